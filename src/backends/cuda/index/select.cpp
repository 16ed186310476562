// Host glue of the gather and scatter slots.
#include "backends/cuda/index/select.h"

#include "array/iteration.h"
#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/array/indexing.h"
#include "catena/core/config.h"
#include "catena/kernels/index.h"

namespace catena::gpu {
namespace {

static_assert(kSelectLists == kMaxPositionLists && kSelectDims == kMaxDims);

LoopPlan plan_select(const SelectCall& call) {
  LoopOperand operands[kSelectOperands];
  operands[0] = {&call.values->shape(), &call.values->strides()};
  operands[1] = {&call.base->shape(), &call.base->strides()};
  for (int k = 0; k < call.count; ++k)
    operands[2 + k] = {&call.positions[k]->shape(), &call.positions[k]->strides()};
  return plan_loop({operands, size_t(2 + call.count)});
}

// The largest copying unit. It is more than an element where runs of the innermost dimension are
// contiguous on both sides and all strides and offsets are multiples of it.
int copy_unit(const LoopPlan& plan, const SelectCall& call, int64_t item) {
  uint64_t bits = uint64_t(plan.inner() * item) |
                  reinterpret_cast<uintptr_t>(call.values->raw_data()) |
                  reinterpret_cast<uintptr_t>(call.base->raw_data());
  bool run = plan.inner_stride(0) == item && plan.inner_stride(1) == item;
  for (int k = 0; k < call.count; ++k) {
    run = run && plan.inner_stride(2 + k) == 0;
    bits |= uint64_t(call.strides[k]);
  }
  if (!run) return static_cast<int>(item);
  for (int d = 0; d + 1 < plan.ndim; ++d)
    bits |= uint64_t(plan.strides[0][d]) | uint64_t(plan.strides[1][d]);
  int unit = 16;
  while (unit > item && (bits & uint64_t(unit - 1))) unit /= 2;
  return unit;
}

SelectArgs select_args(const SelectCall& call) {
  const LoopPlan plan = plan_select(call);
  const int64_t item = call.values->itemsize();
  SelectArgs args{};
  args.unit = copy_unit(plan, call, item);
  args.ndim = plan.ndim;
  args.lists = call.count;
  args.size = plan.size * item / args.unit;
  args.wide = call.positions[0]->dtype() == Dtype::kInt64;
  args.clip = static_cast<OutOfRange>(call.mode) == OutOfRange::kClip;
  args.pointers[0] = static_cast<char*>(call.values->raw_data());
  args.pointers[1] = static_cast<char*>(call.base->raw_data());
  for (int k = 0; k < call.count; ++k) {
    args.pointers[2 + k] = static_cast<char*>(call.positions[k]->raw_data());
    args.extents[k] = call.extents[k];
    args.steps[k] = call.strides[k];
  }
  for (int d = 0; d < plan.ndim; ++d) {
    args.shape[d] = plan.shape[d];
    for (int k = 0; k < 2 + call.count; ++k) args.strides[k][d] = plan.strides[k][d];
  }
  if (args.unit != item) {
    args.shape[plan.ndim - 1] = plan.inner() * item / args.unit;
    args.strides[0][plan.ndim - 1] = args.strides[1][plan.ndim - 1] = args.unit;
  }
  return args;
}

void gather(const SelectCall& call) {
  launch_gather(select_args(call), launch_for(*call.values));
  check_launch("gather");
}

void scatter(const SelectCall& call) {
  SelectArgs args = select_args(call);
  const Launch launch = launch_for(*call.base);
  StoragePtr last;
  if (config().deterministic && call.count == 1 && call.extents[0] > 0) {
    // The caller passes one list that varies along one axis, without gaps.
    const Array& list = *call.positions[0];
    int64_t count = 1;
    for (int d = 0; d < list.ndim(); ++d) {
      if (list.strides()[size_t(d)] != 0) count = list.shape()[size_t(d)];
    }
    const auto bytes = static_cast<size_t>(args.extents[0]) * sizeof(long long);
    last = allocate(call.base->device(), bytes);
    args.last = static_cast<long long*>(last->data);
    CATENA_CUDA_CHECK(cudaMemsetAsync(args.last, 0xff, bytes, launch.stream));
    launch_last_positions(list.raw_data(), args.wide, args.clip, count, args.extents[0], args.last,
                          launch);
  }
  launch_scatter(args, launch);
  check_launch("scatter");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, select) {
  kernels::gather.provide<&gpu::gather>(DeviceType::kCuda, "cuda");
  kernels::scatter.provide<&gpu::scatter>(DeviceType::kCuda, "cuda");
}
