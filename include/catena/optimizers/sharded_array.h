// ShardedArray: a state by name, of which this process keeps a part.
#pragma once

#include <string>
#include <vector>

#include "catena/optimizers/arena.h"

namespace catena::optimizers {

// What is known of an array whose elements may be spread over processes.
struct ShardedArray {
  std::string name;
  Shape shape;  // of the whole
  Dtype dtype;
  MemoryOrder order;    // of the whole: in which `covers` counts
  ElementRange covers;  // what is here, in elements of the whole
  // The whole in its shape if all is here, else the covered elements, 1-d. Views.
  Array local;
  Parameter parameter = {};  // whose state it is; undefined for arrays of none
  // What it is of the parameter, "m": `name` is this and the parameter's path, "m/l1/W". Empty for
  // arrays of no parameter.
  std::string state = {};

  // A state of a parameter, whose path begins with a slash, that is here as a whole.
  static ShardedArray whole_of(const std::string& state, const std::string& path,
                               const Array& array, const Parameter& parameter);
  // Whether all elements are here.
  bool is_whole() const { return covers.size() == element_count(shape); }
  // Copies what is covered from a whole array of any device. The shape must fit.
  void assign(const Array& whole) const;
};
// Of an optimizer.
using ShardedArrays = std::vector<ShardedArray>;

}  // namespace catena::optimizers
