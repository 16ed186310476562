// The shape algebra of element-wise loops, for every device: several operands of one shape become
// the smallest number of dimensions that visits the same elements.
#pragma once

#include <cstdint>
#include <span>

#include "catena/core/error.h"
#include "catena/core/shape.h"

namespace catena {

inline constexpr int kMaxLoopOperands = 10;  // results and inputs of any call, fused ones too

// One operand of a loop. A shape with fewer dimensions or extents of 1 is broadcast to operand 0's.
struct LoopOperand {
  const Shape* shape;
  const Strides* strides;  // bytes
};

// A loop nest over `operands` operands: dimension ndim - 1 is the innermost. ndim is at least 1.
// Strides are bytes and 0 where an operand is broadcast.
struct LoopPlan {
  int ndim = 1;
  int operands = 0;
  int64_t size = 0;  // number of elements of operand 0
  int64_t shape[kMaxDims];
  int64_t strides[kMaxLoopOperands][kMaxDims];

  int64_t inner() const { return shape[ndim - 1]; }
  int64_t inner_stride(int operand) const { return strides[operand][ndim - 1]; }
};

// Operand 0 gives the extents (the output). Extents of 1 are dropped, the dimension with operand
// 0's smallest stride goes innermost (ties: the next operands'), and neighbours that all operands
// step through evenly are merged. Throws ShapeError when an operand does not broadcast to operand
// 0.
LoopPlan plan_loop(std::span<const LoopOperand> operands);

// Byte offsets of all operands at element `index` (C order of the plan), and a counter that steps
// over all but the innermost dimension.
class LoopCursor {
 public:
  LoopCursor(const LoopPlan& plan, int64_t row);  // row: index over the outer dimensions
  int64_t offset(int operand) const { return offsets_[operand]; }
  void next_row();
  // How many rows, this one included, lie evenly apart (by the strides of dimension ndim - 2), and
  // a step over `count` of these at once.
  int64_t even_rows() const {
    return plan_.ndim < 2 ? 1 : plan_.shape[plan_.ndim - 2] - position_[plan_.ndim - 2];
  }
  void next_rows(int64_t count);

 private:
  const LoopPlan& plan_;
  int64_t position_[kMaxDims];
  int64_t offsets_[kMaxLoopOperands];
};

}  // namespace catena
