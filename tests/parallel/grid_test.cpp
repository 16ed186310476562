#include "catena/parallel/grid.h"

#include "catena/comm/factory.h"
#include "error_text.h"

namespace catena::parallel {
namespace {

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
    EXPECT_EQ(&grid.comm(), &comm);
  });
  comm::run_threads(3, [](Communicator& comm) {
    const Grid grid(comm, {.tensor = 3});
    EXPECT_EQ(grid.tensor().rank(), comm.rank());
    EXPECT_EQ(grid.data().size() + grid.pipeline().size(), 2);
  });
}

// As a mesh, whose axes it names as they were given.
TEST(Grid, RefusesSizesThatDoNotFit) {
  comm::run_threads(4, [](Communicator& comm) {
    expect_contains(error_of<ValueError>([&] { Grid(comm, {.data = 2, .tensor = 3}); }),
                    {"{data 2, pipeline 1, tensor 3} needs 6 ranks, the communicator has 4"});
    expect_contains(error_of<ValueError>([&] { Grid(comm, {.data = 2, .pipeline = 3}); }),
                    {"{data 2, pipeline 3} needs 6 ranks, the communicator has 4"});
    const int many = 1 << 30;
    expect_contains(error_of<ValueError>([&] {
                      Grid(comm, {many, many, many});
                    }),
                    {"needs at least 1152921504606846976 ranks"});
    const GridShape cut = comm.rank() == 1 ? GridShape{2, 1, 2} : GridShape{2, 2, 1};
    expect_contains(error_of<ValueError>([&] { Grid(comm, cut); }),
                    {"rank 0 gave {data 2, pipeline 2}, rank 1 {data 2, pipeline 1, tensor 2}"});
  });
}

}  // namespace
}  // namespace catena::parallel
