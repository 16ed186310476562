#include "catena/parallel/grid.h"

#include "catena/comm/factory.h"
#include "error_text.h"

namespace catena::parallel {
namespace {

TEST(Grid, HasRowsAndColumns) {
  comm::run_threads(6, [](Communicator& comm) {
    const Grid grid(comm, {.data = 2, .pipeline = 3});
    EXPECT_EQ(grid.replica(), comm.rank() / 3);
    EXPECT_EQ(grid.position(), comm.rank() % 3);
    EXPECT_EQ(grid.data().size(), 2);
    EXPECT_EQ(grid.pipeline().size(), 3);
    EXPECT_EQ(grid.pipeline().all_reduce_value(comm.rank()), grid.replica() == 0 ? 3 : 12);
    EXPECT_EQ(grid.data().all_reduce_value(comm.rank()), 3 + 2 * grid.position());
    EXPECT_EQ(&grid.comm(), &comm);
  });
}

TEST(Grid, PutsTensorRanksNextToEachOther) {
  comm::run_threads(12, [](Communicator& comm) {
    const Grid grid(comm, {.data = 2, .pipeline = 3, .tensor = 2});
    EXPECT_EQ(comm.rank(), (grid.replica() * 3 + grid.position()) * 2 + grid.tensor_rank());
    EXPECT_EQ(grid.data().size(), 2);
    EXPECT_EQ(grid.pipeline().size(), 3);
    EXPECT_EQ(grid.tensor().size(), 2);
    const int neighbour = comm.rank() % 2 == 0 ? comm.rank() + 1 : comm.rank() - 1;
    EXPECT_EQ(grid.tensor().all_reduce_value(comm.rank()), comm.rank() + neighbour);
    EXPECT_EQ(grid.data().all_reduce_value(comm.rank()), 2 * (comm.rank() % 6) + 6);
    const int first = grid.replica() * 6 + grid.tensor_rank();
    EXPECT_EQ(grid.pipeline().all_reduce_value(comm.rank()), 3 * first + 2 + 4);
    EXPECT_EQ(grid.pipeline().rank(), grid.position());
    EXPECT_EQ(grid.data().rank(), grid.replica());
  });
  comm::run_threads(3, [](Communicator& comm) {
    const Grid grid(comm, {.tensor = 3});
    EXPECT_EQ(grid.tensor().rank(), comm.rank());
    EXPECT_EQ(grid.data().size() + grid.pipeline().size(), 2);
  });
}

TEST(Grid, RefusesSizesThatDoNotFit) {
  comm::run_threads(4, [](Communicator& comm) {
    expect_contains(error_of<ValueError>([&] { Grid(comm, {.data = 2, .tensor = 3}); }),
                    {"{data 2, pipeline 1, tensor 3} needs 6 ranks, the communicator has 4"});
    expect_contains(error_of<ValueError>([&] { Grid(comm, {.data = 4, .tensor = 0}); }),
                    {"at least 1 of each, got {data 4, pipeline 1, tensor 0}"});
    const int many = 1 << 30;
    expect_contains(error_of<ValueError>([&] {
                      Grid(comm, {many, many, many});
                    }),
                    {"needs at least 1152921504606846976 ranks"});
    expect_contains(error_of<ValueError>([&] { Grid(comm, {.data = 2, .pipeline = 3}); }),
                    {"{data 2, pipeline 3} needs 6 ranks, the communicator has 4"});
    expect_contains(error_of<ValueError>([&] { Grid(comm, {.data = 65536, .pipeline = 65536}); }),
                    {"needs 4294967296 ranks"});
    expect_contains(error_of<ValueError>([&] { Grid(comm, {.data = 0, .pipeline = 4}); }),
                    {"at least 1"});
  });
}

TEST(Grid, RefusesShapesThatDiffer) {
  comm::run_threads(4, [](Communicator& comm) {
    const GridShape shape = comm.rank() == 2 ? GridShape{4, 1} : GridShape{2, 2};
    expect_contains(error_of<ValueError>([&] { Grid(comm, shape); }),
                    {"rank 0 gave {data 2, pipeline 2}, rank 2 {data 4, pipeline 1}"});
    const GridShape cut = comm.rank() == 1 ? GridShape{2, 1, 2} : GridShape{2, 2, 1};
    expect_contains(error_of<ValueError>([&] { Grid(comm, cut); }),
                    {"rank 0 gave {data 2, pipeline 2}, rank 1 {data 2, pipeline 1, tensor 2}"});
  });
}

}  // namespace
}  // namespace catena::parallel
