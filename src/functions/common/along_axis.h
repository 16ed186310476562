// Elements of each line of an array along an axis.
#pragma once

#include <vector>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"

namespace catena::functions {

// The index of the elements at `positions`, integers with as many axes as an array of this shape,
// along the axis; positions broadcast with it outside the axis.
inline std::vector<AnyIndex> along_axis(const Shape& shape, const Array& positions, int axis) {
  std::vector<AnyIndex> places;
  for (int d = 0; d < shape.ndim(); ++d) {
    Shape line(shape.size(), 1);
    line[size_t(d)] = shape[size_t(d)];
    places.emplace_back(
        d == axis ? positions
                  : arange(shape[size_t(d)], {Dtype::kInt64, positions.device()}).reshape(line));
  }
  return places;
}

// The elements there. Positions out of range are those of some element: nothing waits for a GPU.
inline Array pick_along_axis(const Array& x, const Array& positions, int axis) {
  return index_get(x, std::span<const AnyIndex>(along_axis(x.shape(), positions, axis)),
                   OutOfRange::kClip);
}

}  // namespace catena::functions
