// Collapses loop nests. See iteration.h.
#include "array/iteration.h"

#include <algorithm>
#include <cstdlib>

namespace catena {

namespace {

// Strides of `operand` along the axes of `extents`; 0 where it is broadcast.
void broadcast_strides(const LoopOperand& operand, const Shape& extents, int64_t* result) {
  const int ndim = extents.ndim(), missing = ndim - operand.shape->ndim();
  CATENA_CHECK(ShapeError, missing >= 0, "an operand of shape ", *operand.shape,
               " has more dimensions than the result ", extents);
  for (int d = 0; d < ndim; ++d) {
    const int64_t extent = d < missing ? 1 : (*operand.shape)[size_t(d - missing)];
    CATENA_CHECK(ShapeError, extent == extents[size_t(d)] || extent == 1, "an operand of shape ",
                 *operand.shape, " does not broadcast to ", extents);
    result[d] = extent == 1 ? 0 : (*operand.strides)[size_t(d - missing)];
  }
}

// Whether dimension a must be outside dimension b.
bool goes_outside(const LoopPlan& plan, int a, int b) {
  for (int k = 0; k < plan.operands; ++k) {
    const int64_t x = std::abs(plan.strides[k][a]), y = std::abs(plan.strides[k][b]);
    if (x == 0 || y == 0 || x == y) continue;
    return x > y;
  }
  return true;  // keep the order
}

void swap_dims(LoopPlan& plan, int a, int b) {
  std::swap(plan.shape[a], plan.shape[b]);
  for (int k = 0; k < plan.operands; ++k) std::swap(plan.strides[k][a], plan.strides[k][b]);
}

void merge_neighbours(LoopPlan& plan) {
  int last = 0;
  for (int d = 1; d < plan.ndim; ++d) {
    bool even = true;
    for (int k = 0; k < plan.operands; ++k) {
      even = even && plan.strides[k][last] == plan.strides[k][d] * plan.shape[d];
    }
    if (even) {
      plan.shape[last] *= plan.shape[d];
    } else {
      plan.shape[++last] = plan.shape[d];
    }
    for (int k = 0; k < plan.operands; ++k) plan.strides[k][last] = plan.strides[k][d];
  }
  plan.ndim = last + 1;
}

}  // namespace

LoopPlan plan_loop(std::span<const LoopOperand> operands) {
  LoopPlan plan;
  plan.operands = static_cast<int>(operands.size());
  const Shape& extents = *operands[0].shape;
  for (int k = 0; k < plan.operands; ++k) {
    broadcast_strides(operands[size_t(k)], extents, plan.strides[k]);
  }
  plan.size = 1;
  int kept = 0;
  for (int d = 0; d < extents.ndim(); ++d) {
    plan.size *= extents[size_t(d)];
    if (extents[size_t(d)] == 1) continue;
    plan.shape[kept] = extents[size_t(d)];
    for (int k = 0; k < plan.operands; ++k) plan.strides[k][kept] = plan.strides[k][d];
    ++kept;
  }
  plan.ndim = kept;
  // Insertion sort, because there are few dimensions and they are nearly always sorted.
  for (int d = 1; d < kept; ++d) {
    for (int e = d; e > 0 && !goes_outside(plan, e - 1, e); --e) swap_dims(plan, e - 1, e);
  }
  if (kept == 0) {
    plan.ndim = 1;
    plan.shape[0] = 1;
    for (int k = 0; k < plan.operands; ++k) plan.strides[k][0] = 0;
  } else {
    merge_neighbours(plan);
  }
  return plan;
}

LoopCursor::LoopCursor(const LoopPlan& plan, int64_t row) : plan_(plan) {
  for (int k = 0; k < plan.operands; ++k) offsets_[k] = 0;
  for (int d = plan.ndim - 2; d >= 0; --d) {
    position_[d] = row % plan.shape[d];
    row /= plan.shape[d];
    for (int k = 0; k < plan.operands; ++k) offsets_[k] += position_[d] * plan.strides[k][d];
  }
}

void LoopCursor::next_rows(int64_t count) {
  if (plan_.ndim < 2) return;
  const int d = plan_.ndim - 2;
  position_[d] += count - 1;
  for (int k = 0; k < plan_.operands; ++k) offsets_[k] += plan_.strides[k][d] * (count - 1);
  next_row();
}

void LoopCursor::next_row() {
  for (int d = plan_.ndim - 2; d >= 0; --d) {
    for (int k = 0; k < plan_.operands; ++k) offsets_[k] += plan_.strides[k][d];
    if (++position_[d] < plan_.shape[d]) return;
    for (int k = 0; k < plan_.operands; ++k) offsets_[k] -= plan_.strides[k][d] * plan_.shape[d];
    position_[d] = 0;
  }
}

}  // namespace catena
