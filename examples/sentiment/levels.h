// Many trees side by side, level by level, so that all nodes of a level are computed together.
#pragma once

#include <vector>

#include "catena/array/array.h"
#include "catena/datasets/dataset.h"
#include "trees.h"

namespace sentiment {

using catena::Array;

// Level 0 has the roots, and level d + 1 the parts of level d. In each the inner nodes come before
// the leaves. Sizes are those of the arrays, so that nothing has to be read from a device.
struct Levels {
  Array labels;  // int32 (nodes), level 0 first
  Array words;   // int32 (leaves), level 0 first
  // parts[d]: the rows of level d + 1 in which the left and the right part of the first inner node
  // of level d are, those of the second, ...: int32 (2 * inner nodes)
  std::vector<Array> parts;

  struct Size {
    int64_t inner, leaves;
  };
  std::vector<Size> sizes() const;  // of each level
};

// A data set of trees, and its Collate, which makes the arrays of a batch. levels_of gives them
// their names again.
catena::datasets::DatasetPtr dataset_of(const std::vector<Tree>& trees);
catena::datasets::Arrays by_level(const std::vector<catena::datasets::Arrays>& trees);
Levels levels_of(const catena::datasets::Arrays& batch);

}  // namespace sentiment
