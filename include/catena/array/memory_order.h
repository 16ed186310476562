// The order of the axes of an array in memory.
#pragma once

#include "catena/core/shape.h"

namespace catena {

// A permutation of the axes, the outermost in memory first. A default-made one is C order for any
// number of axes: the last axis is the innermost.
class MemoryOrder {
 public:
  MemoryOrder() = default;
  // The axes, outermost first: {0, 2, 3, 1} for images (n, c, h, w) with their channels last.
  // ValueError unless each of 0 to n - 1 is listed once.
  explicit MemoryOrder(const Axes& axes);
  // The first axis is the innermost.
  static MemoryOrder fortran(int ndim);
  // Axes by descending distance of neighbours in memory; equal distances as in C order.
  static MemoryOrder of(const Strides& strides);

  bool is_c() const { return axes_.empty(); }  // the last axis is the innermost
  // The permutation for arrays of `ndim` axes, and the one that undoes it.
  Axes axes(int ndim) const;
  Axes inverse(int ndim) const;
  // Byte strides of an array without gaps.
  Strides strides(const Shape& shape, int64_t itemsize) const;

  friend bool operator==(const MemoryOrder& a, const MemoryOrder& b) { return a.axes_ == b.axes_; }

 private:
  Axes axes_;  // empty: C order
};

}  // namespace catena
