#include "catena/parallel/grid.h"

namespace catena::parallel {
namespace {

void check_equal(Communicator& comm, const GridShape& shape) {
  const std::vector<GridShape> shapes = comm.all_gather_object(shape);
  for (size_t r = 1; r < shapes.size(); ++r)
    CATENA_CHECK(ValueError,
                 shapes[r].data == shapes[0].data && shapes[r].pipeline == shapes[0].pipeline,
                 "Grid: rank 0 gave {data ", shapes[0].data, ", pipeline ", shapes[0].pipeline,
                 "}, rank ", r, " {data ", shapes[r].data, ", pipeline ", shapes[r].pipeline,
                 "}; give all ranks the same shape");
}

}  // namespace

Grid::Grid(Communicator& comm, const GridShape& shape)
    : comm_(&comm), keep_(comm.weak_from_this().lock()), shape_(shape) {
  check_equal(comm, shape);
  CATENA_CHECK(ValueError, shape.data >= 1 && shape.pipeline >= 1,
               "Grid: expected at least 1 of both, got {data ", shape.data, ", pipeline ",
               shape.pipeline, "}");
  const int64_t ranks = int64_t{shape.data} * shape.pipeline;
  CATENA_CHECK(ValueError, ranks == comm.size(), "Grid: {data ", shape.data, ", pipeline ",
               shape.pipeline, "} needs ", ranks, " ranks, the communicator has ", comm.size());
  const int replica = comm.rank() / shape.pipeline, position = comm.rank() % shape.pipeline;
  data_ = comm.split(position, replica);
  pipeline_ = comm.split(replica, position);
}

}  // namespace catena::parallel
