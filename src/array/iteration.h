// The shape algebra of element-wise loops, for every device. It reduces several operands of one
// shape to the smallest number of dimensions that visits the same elements.
#pragma once

#include <cstdint>
#include <span>

#include "catena/core/error.h"
#include "catena/core/shape.h"

namespace catena {

inline constexpr int kMaxLoopOperands = 10;  // outputs and inputs of any call, including fused ones

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

// The extents are those of operand 0 (the output). Extents of 1 are dropped. The dimension with the
// smallest stride of operand 0 becomes the innermost one (ties: the next operands' strides).
// Adjacent dimensions through which all operands step evenly are merged. Throws ShapeError if an
// operand does not broadcast to operand 0.
LoopPlan plan_loop(std::span<const LoopOperand> operands);

// Byte offsets of all operands at element `index` (C order of the plan). It counts over all
// dimensions but the innermost one.
class LoopCursor {
 public:
  LoopCursor(const LoopPlan& plan, int64_t row);  // row: index over the outer dimensions
  int64_t offset(int operand) const { return offsets_[operand]; }
  void next_row();
  // How many rows, including this one, are at equal distances (the strides of dimension ndim - 2),
  // and a step over `count` of them.
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
