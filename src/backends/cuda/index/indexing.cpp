// Host glue of the take and scatter_add slots.
#include "backends/cuda/index/indexing.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/array/indexing.h"
#include "catena/core/config.h"
#include "catena/kernels/index.h"
#include "catena/kernels/sort.h"

namespace catena::gpu {
namespace {

Positions positions_of(const Array& indices, bool clip) {
  return {indices.raw_data(), indices.dtype() == Dtype::kInt64, clip, indices.size()};
}

// The largest copying unit that divides the slices and the addresses.
int copy_unit(int64_t slice_bytes, const void* source, const void* output) {
  const uint64_t bits = uint64_t(slice_bytes) | reinterpret_cast<uintptr_t>(source) |
                        reinterpret_cast<uintptr_t>(output);
  int unit = 16;
  while (bits & uint64_t(unit - 1)) unit /= 2;
  return unit;
}

void take(const TakeCall& call) {
  const auto& [source, indices, mode, output] = call;
  if (output.size() == 0) return;
  TakeArgs args{};
  args.source = source.raw_data();
  args.output = output.raw_data();
  args.positions = positions_of(indices, static_cast<OutOfRange>(mode) == OutOfRange::kClip);
  args.outer = source.shape()[0];
  args.extent = source.shape()[1];
  args.slice_bytes = source.shape()[2] * source.itemsize();
  args.unit = copy_unit(args.slice_bytes, args.source, args.output);
  launch_take(args, launch_for(output));
  check_launch("take");
}

ScatterType scatter_code(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
      return ScatterType::kBool;
    case Dtype::kInt8:
    case Dtype::kUInt8:
      return ScatterType::kI8;
    case Dtype::kInt16:
    case Dtype::kUInt16:
      return ScatterType::kI16;
    case Dtype::kInt32:
    case Dtype::kUInt32:
      return ScatterType::kI32;
    case Dtype::kInt64:
    case Dtype::kUInt64:
      return ScatterType::kI64;
    case Dtype::kFloat16:
      return ScatterType::kF16;
    case Dtype::kBFloat16:
      return ScatterType::kBf16;
    case Dtype::kFloat32:
      return ScatterType::kF32;
    case Dtype::kFloat64:
      return ScatterType::kF64;
  }
  fail<DtypeError>("invalid dtype");
}

// The positions in ascending order, and their numbers.
struct SortedPositions {
  Array places, numbers;
};
SortedPositions sort_positions(const Array& target, const ScatterArgs& args, const Launch& launch) {
  const Shape shape{1, args.positions.count};
  const Dtype dtype = sorted_positions_are_wide(args.extent) ? Dtype::kInt64 : Dtype::kUInt32;
  const Device device = target.device();
  const Array unsorted = Array::uninitialized(shape, dtype, device);
  launch_resolve_positions(args.positions, args.extent, unsorted.raw_data(), launch);
  SortedPositions sorted{Array::uninitialized(shape, dtype, device),
                         Array::uninitialized(shape, Dtype::kInt64, device)};
  kernels::sort(device, SortCall{&unsorted, false, &sorted.places, &sorted.numbers});
  return sorted;
}

void scatter_add(const ScatterAddCall& call) {
  const auto& [target, indices, values] = call;
  if (values.size() == 0) return;
  const Launch launch = launch_for(target);
  const ScatterType type = scatter_code(target.dtype());
  const bool ordered = config().deterministic;
  ScatterArgs args{};
  args.target = target.raw_data();
  args.values = values.raw_data();
  args.positions = positions_of(indices, false);
  args.outer = target.shape()[0];
  args.extent = target.shape()[1];
  args.inner = target.shape()[2];
  SortedPositions sorted;
  if (scatter_wants_sorted(type, ordered, args)) {
    sorted = sort_positions(target, args, launch);
    args.sorted = sorted.places.raw_data();
    args.numbers = sorted.numbers.data<int64_t>();
  }
  launch_scatter_add(type, ordered, args, launch);
  check_launch("scatter_add");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, indexing) {
  kernels::take.provide<&gpu::take>(DeviceType::kCuda, "cuda");
  kernels::scatter_add.provide<&gpu::scatter_add>(DeviceType::kCuda, "cuda");
}
