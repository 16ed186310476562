#include "slices.h"

#include <algorithm>

#include "catena/autograd/placement.h"
#include "catena/comm/internals.h"
#include "catena/parallel/tensor/placement.h"

namespace catena::parallel {
namespace {

// Whether the ranks of the communicator differ in that coordinate, of one axis or of several
// ("context+tensor") that are all theirs. What has no name is taken for the other.
bool is_along(const Communicator& comm, const std::string& mesh_axis) {
  const std::vector<std::string>& names = comm.axis().names;
  if (mesh_axis.empty() || names.empty()) return true;
  const std::vector<std::string> cut = axes_of(mesh_axis);
  return std::all_of(cut.begin(), cut.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

// Into how many slices these ranks cut the parameter.
int slices_over(const Communicator& comm, const Parameter& parameter) {
  int slices = 1;
  if (const Placement* placement = parameter.placement())
    for (const Placement::Over& over : placement->over)
      if (over.kind == Placement::Kind::kCut && is_along(comm, over.mesh_axis))
        slices *= over.count;
  return std::min(slices, comm.size());
}

}  // namespace

double weight_over(const Communicator& comm, const Parameter& parameter) {
  const int slices = slices_over(comm, parameter);
  if (slices == 1) return comm.rank() == 0 ? 1 : 0;
  return double(slices) / comm.size();
}

void place_as_cut(const Parameter& parameter, const Communicator& comm) {
  if (slices_over(comm, parameter) > 1) return;
  Placement placement = parameter.placement() == nullptr ? Placement() : *parameter.placement();
  placement.over.push_back(
      {.mesh_axis = mesh_axis_of(comm), .index = comm.rank(), .count = comm.size()});
  parameter.place(placement);
}

void sum_over_ranks(Communicator& comm, const Arrays& arrays, const char* purpose) {
  const comm::PurposeScope scope(&comm, purpose);
  comm.group([&] {
    for (const Array& one : arrays) comm.all_reduce(one, comm::Reduction::kSum, one);
  });
}

}  // namespace catena::parallel
