// Chooses the element-wise kernel for a loop plan. See map_launch.h.
#include "backends/cuda/jit/map_launch.h"

#include "backends/cuda/jit/host_args.h"

namespace catena::jit {

namespace {

// Below these extents a kernel's special access pattern does not pay.
constexpr int64_t kLeastColumns = 4;
constexpr int64_t kLeastTile = 16;

// The dimension along which most inputs are contiguous, of those that are not contiguous along the
// innermost one.
int staging_dim(const LoopPlan& plan, const int* itemsize, uint32_t crosswise) {
  for (int k = 1; k < plan.operands; ++k) {
    if (!((crosswise >> k) & 1)) continue;
    for (int d = 0; d < plan.ndim - 1; ++d) {
      if (plan.strides[k][d] == itemsize[k] && plan.shape[d] >= kLeastTile) return d;
    }
  }
  return -1;
}

}  // namespace

MapLayout choose_layout(const LoopPlan& plan, const int* itemsize, uint32_t is_array) {
  const int inner = plan.ndim - 1;
  uint32_t crosswise = 0;  // inputs that are not contiguous along the innermost dimension
  for (int k = 0; k < plan.operands; ++k) {
    if (!((is_array >> k) & 1)) continue;
    const int64_t stride = plan.strides[k][inner];
    if (stride != itemsize[k] && !(k > 0 && stride == 0)) crosswise |= 1u << k;
  }
  if (plan.ndim > kMapDims) return {kStridedKernel};
  if (crosswise == 0) {
    if (plan.ndim == 1) return {kFlatKernel};
    return {plan.inner() >= kLeastColumns ? kRowsKernel : kStridedKernel};
  }
  if ((crosswise & 1) || plan.inner() < kLeastTile) return {kStridedKernel};
  MapLayout layout{kTiledKernel, staging_dim(plan, itemsize, crosswise)};
  if (layout.staged_dim < 0) return {kStridedKernel};
  for (int k = 1; k < plan.operands; ++k) {
    if (((crosswise >> k) & 1) && plan.strides[k][layout.staged_dim] == itemsize[k])
      layout.staged |= 1u << k;
  }
  return layout;
}

}  // namespace catena::jit
