#include "catena/serializers/tensor_part.h"

#include <algorithm>

#include "catena/autograd/placement.h"

namespace catena::serializers {
namespace {

// Whether the array has the elements of a box of its shape without gaps, in this order.
bool is_box_of(const Array& array, const MemoryOrder& order) {
  const Strides dense = order.strides(array.shape(), array.itemsize());
  for (size_t axis = 0; axis < dense.size(); ++axis)
    if (array.shape()[axis] > 1 && array.strides()[axis] != dense[axis]) return false;
  return true;
}

// The memory of an array without gaps, seen with another shape.
Array seen_as(const Array& array, const Shape& shape, const MemoryOrder& order) {
  const auto* start = static_cast<const char*>(array.storage()->data);
  return Array::from_storage(array.storage(), static_cast<const char*>(array.raw_data()) - start,
                             shape, order.strides(shape, array.itemsize()), array.dtype());
}

// Makes a tensor of this process the box of the whole that the placement says. States of another
// shape than their parameter's have its box along the axes that have the same extent.
void place_in_whole(TensorSlice& slice, const Placement* placement, const Shape& local) {
  if (placement == nullptr || !placement->has_box()) return;
  for (size_t axis = 0; axis < std::min(slice.shape.size(), local.size()); ++axis) {
    if (slice.extent[axis] != local[axis]) continue;
    slice.shape[axis] = placement->whole[axis];
    slice.begin[axis] = placement->begin[axis];
  }
}

}  // namespace

Array TensorPart::flat() const {
  if (local.size() == 0) return Array::uninitialized({0}, local.dtype(), local.device());
  if (local.shape() == slice.extent && is_box_of(local, slice.order))
    return seen_as(local, {local.size()}, {});
  return local.contiguous().reshape({-1});
}

void TensorPart::assign(const Array& flat) const {
  if (local.size() == 0) return;
  if (parameter.defined() && parameter.state()->data->is_absent)  // of which `local` has some
    ++parameter.state()->data->moved_writes;
  local.assign(local.shape() == slice.extent ? seen_as(flat, slice.extent, slice.order) : flat);
}

TensorPart part_of(const std::string& name, const Array& array, const Parameter& parameter) {
  const MemoryOrder order = array.order();
  TensorSlice slice{.name = name,
                    .dtype = array.dtype(),
                    .shape = array.shape(),
                    .begin = Shape(array.shape().size(), 0),
                    .extent = array.shape(),
                    .order = is_box_of(array, order) ? order : MemoryOrder(),
                    .elements = {0, array.size()}};
  if (parameter.defined()) place_in_whole(slice, parameter.placement(), parameter.shape());
  return {std::move(slice), array, parameter};
}

TensorPart part_of(const std::string& name, const Parameter& parameter) {
  const auto kept = parameter.state()->kept_values();
  if (!kept) return part_of(name, parameter.data(), parameter);
  const optimizers::ElementRange covers{kept->begin, kept->begin + kept->elements.size()};
  return part_of(name, optimizers::ShardedArray{name, parameter.shape(), parameter.dtype(),
                                                kept->order, covers, kept->elements, parameter});
}

TensorPart part_of(const std::string& name, const Persistent& persistent) {
  TensorPart part = part_of(name, persistent.data());
  part.slice.is_equal = persistent.over_ranks() == OverRanks::kEqual;
  place_in_whole(part.slice, persistent.placement(), persistent.shape());
  return part;
}

TensorPart part_of(const std::string& name, const optimizers::ShardedArray& state) {
  if (state.is_whole() && state.local.shape() == state.shape)
    return part_of(name, state.local, state.parameter);
  TensorSlice slice{.name = name,
                    .dtype = state.dtype,
                    .shape = state.shape,
                    .begin = Shape(state.shape.size(), 0),
                    .extent = state.shape,
                    .order = state.order,
                    .elements = state.covers};
  if (state.parameter.defined())
    place_in_whole(slice, state.parameter.placement(), state.parameter.shape());
  return {std::move(slice), state.local, state.parameter};
}

}  // namespace catena::serializers
