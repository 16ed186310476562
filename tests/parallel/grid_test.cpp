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

TEST(Grid, RefusesSizesThatDoNotFit) {
  comm::run_threads(4, [](Communicator& comm) {
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
  });
}

}  // namespace
}  // namespace catena::parallel
