// Arrays of one shape as rows of adjacent numbers, for kernels that take rows at any distance.
#pragma once

#include <optional>
#include <vector>

#include "catena/array/array.h"

namespace catena::functions {

// Row r of array k begins r * steps[k] elements behind its first one.
struct CommonRows {
  int64_t rows = 1, columns = 1;
  std::vector<int64_t> steps;

  // The longest rows that all arrays have; nothing where numbers next to each other in `order` have
  // gaps between them in one of the arrays, unless rows of one number will do, too. All arrays are
  // of the first one's shape, and none is empty.
  static std::optional<CommonRows> of(const std::vector<const Array*>& arrays,
                                      const MemoryOrder& order, bool single_numbers);
};

// `a` in this order without gaps: a copy.
Array dense_copy(const Array& a, const MemoryOrder& order);

}  // namespace catena::functions
