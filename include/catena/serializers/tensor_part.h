// Parts of tensors: what one process has, or wants, of tensors that are spread over processes.
#pragma once

#include <string>
#include <vector>

#include "catena/array/memory_order.h"
#include "catena/autograd/parameter.h"
#include "catena/autograd/persistent.h"
#include "catena/optimizers/sharded_array.h"

namespace catena::serializers {

// Some elements of a tensor: those of a box in it, or a range of these.
struct TensorSlice {
  std::string name;  // of the whole tensor, in every process that has a part of it
  Dtype dtype = Dtype::kFloat32;
  Shape shape;                        // of the whole tensor
  Shape begin, extent;                // the box: its first corner and its size
  MemoryOrder order;                  // of the box's axes, in which its elements are counted
  optimizers::ElementRange elements;  // of the box
  // Whether all processes that have the slice have the same bits, so that each may write some of
  // them. If not, those of the first process count.
  bool is_equal = true;
  // Numbers that belong to an object, such as counts, which are read as whole arrays.
  bool is_value = false;

  // Of the elements.
  int64_t bytes() const { return elements.size() * int64_t(itemsize(dtype)); }
  // Whether the box is the whole tensor.
  bool has_whole_box() const { return extent == shape; }
};

// A slice and the memory of its elements.
struct TensorPart {
  TensorSlice slice;
  // A view: of the box's shape if all of its elements are here, else 1-d.
  Array local;
  Parameter parameter = {};  // that the tensor is, or is a state of; undefined for others

  // The elements as a 1-d contiguous array in the order of the slice, on their device: a view.
  Array flat() const;
  // Writes elements that flat() has the form of, from any device.
  void assign(const Array& flat) const;
};
using TensorParts = std::vector<TensorPart>;  // of one process

// A tensor of which this process has the box that the placement of its parameter says, or the
// whole, as of the arrays below. Arrays with gaps are copied.
TensorPart part_of(const std::string& name, const Array& array, const Parameter& parameter = {});
// A parameter: its values, or what this process keeps of them (ParameterState::kept_values).
TensorPart part_of(const std::string& name, const Parameter& parameter);
// The array of a model beside its parameters.
TensorPart part_of(const std::string& name, const Persistent& persistent);
// What this process keeps of a state of an optimizer.
TensorPart part_of(const std::string& name, const optimizers::ShardedArray& state);

}  // namespace catena::serializers
