#include "catena/parallel/grid.h"

#include <limits>
#include <string>
#include <vector>

namespace catena::parallel {
namespace {

// As it was written: a grid of two sizes has no tensor.
std::string text_of(const GridShape& shape) {
  const std::string two = message("{data ", shape.data, ", pipeline ", shape.pipeline);
  return shape.tensor == 1 ? two + "}" : message(two, ", tensor ", shape.tensor, "}");
}

void check_equal(Communicator& comm, const GridShape& shape) {
  const std::vector<GridShape> shapes = comm.all_gather_object(shape);
  for (size_t r = 1; r < shapes.size(); ++r)
    CATENA_CHECK(ValueError, shapes[r] == shapes[0], "Grid: rank 0 gave ", text_of(shapes[0]),
                 ", rank ", r, " ", text_of(shapes[r]), "; give all ranks the same shape");
}

void check_size(const Communicator& comm, const GridShape& shape) {
  CATENA_CHECK(ValueError, shape.data >= 1 && shape.pipeline >= 1 && shape.tensor >= 1,
               "Grid: expected at least 1 of each, got ", text_of(shape));
  // The product of three sizes may overflow.
  const int64_t columns = int64_t{shape.pipeline} * shape.tensor;
  const bool is_huge = columns > std::numeric_limits<int>::max();
  const int64_t ranks = is_huge ? columns : columns * shape.data;
  CATENA_CHECK(ValueError, ranks == comm.size(), "Grid: ", text_of(shape), " needs ",
               is_huge ? "at least " : "", ranks, " ranks, the communicator has ", comm.size());
}

}  // namespace

Grid::Grid(Communicator& comm, const GridShape& shape)
    : comm_(&comm), keep_(comm.weak_from_this().lock()), shape_(shape) {
  check_equal(comm, shape);
  check_size(comm, shape);
  const int tensor = comm.rank() % shape.tensor, place = comm.rank() / shape.tensor;
  const int replica = place / shape.pipeline, position = place % shape.pipeline;
  data_ = comm.split(position * shape.tensor + tensor, replica);
  pipeline_ = comm.split(replica * shape.tensor + tensor, position);
  tensor_ = comm.split(place, tensor);
}

}  // namespace catena::parallel
