#include "catena/parallel/tensor/placement.h"

#include <algorithm>
#include <numeric>

#include "catena/array/manipulation.h"

namespace catena::parallel {
namespace {

constexpr const char* kWho = "piece_of";

// As given, or equal ones.
std::vector<int64_t> sizes_over(const Communicator& comm, int64_t extent,
                                const std::vector<int64_t>& given) {
  const int64_t count = comm.size();
  if (given.empty()) {
    CATENA_CHECK(ValueError, extent % count == 0, kWho, ": ", extent,
                 " elements cannot be divided equally among ", count,
                 " ranks; choose a multiple, or give the size of each rank's piece");
    return std::vector<int64_t>(size_t(count), extent / count);
  }
  const bool all = std::all_of(given.begin(), given.end(), [](int64_t n) { return n >= 0; });
  const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  CATENA_CHECK(ValueError, all && int64_t(given.size()) == count && sum == extent, kWho,
               ": expected a size of at least 0 for each of ", count, " ranks with the sum ",
               extent, ", got ", Shape(given));
  return given;
}

}  // namespace

std::string mesh_axis_of(const Communicator& comm) {
  return comm.axis().names.empty() ? "" : comm.axis().text();
}

std::vector<std::string> axes_of(const std::string& mesh_axis) {
  std::vector<std::string> axes;
  for (size_t begin = 0, end = 0; end != mesh_axis.npos; begin = end + 1) {
    end = mesh_axis.find('+', begin);
    axes.push_back(mesh_axis.substr(begin, end - begin));
  }
  return axes;
}

Placement piece_of(const Shape& whole, const Communicator& comm, int axis,
                   const std::vector<int64_t>& sizes) {
  CATENA_CHECK(ShapeError, axis >= 0 && size_t(axis) < whole.size(), kWho, ": axis ", axis,
               " of a whole of shape ", whole, ", expected one of its axes");
  const std::vector<int64_t> all = sizes_over(comm, whole[size_t(axis)], sizes);
  Shape local = whole;
  local[size_t(axis)] = all[size_t(comm.rank())];
  const int64_t begin = std::accumulate(all.begin(), all.begin() + comm.rank(), int64_t{0});
  return cut_along(local, axis, begin, whole[size_t(axis)],
                   {.mesh_axis = mesh_axis_of(comm), .index = comm.rank(), .count = comm.size()});
}

OwnedParameter part_of_whole(const Array& whole, const Communicator& comm, int axis,
                             const std::vector<int64_t>& sizes) {
  const Placement placement = piece_of(whole.shape(), comm, axis, sizes);
  const int64_t own = sizes_over(comm, whole.shape()[size_t(axis)], sizes)[size_t(comm.rank())];
  const int64_t begin = placement.begin[size_t(axis)];
  OwnedParameter part(split(whole, {begin, begin + own}, axis)[1].copy());
  part.place(placement);
  return part;
}

}  // namespace catena::parallel
