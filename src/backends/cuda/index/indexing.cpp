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

Positions positions_of(const Array& indices, bool clip, const IdRule& ids) {
  Positions positions{};
  positions.data = indices.raw_data();
  positions.wide = indices.dtype() == Dtype::kInt64;
  positions.clip = clip;
  positions.strict = ids.strict;
  positions.ignores = ids.ignored.has_value();
  positions.ignored = ids.ignored.value_or(0);
  positions.count = indices.size();
  return positions;
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
  const auto& [source, indices, mode, output, ids] = call;
  if (output.size() == 0) return;
  TakeArgs args{};
  args.source = source.raw_data();
  args.output = output.raw_data();
  args.positions = positions_of(indices, static_cast<OutOfRange>(mode) == OutOfRange::kClip, ids);
  args.outer = source.shape()[0];
  args.extent = source.shape()[1];
  args.slice_bytes = source.shape()[2] * source.itemsize();
  args.unit = copy_unit(args.slice_bytes, args.source, args.output);
  launch_take(args, launch_for(output));
  check_launch("take");
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

// From about this many bytes on, reading and writing the target twice costs more than the lists of
// launch_scatter_rows.
constexpr int64_t kManyBytes = int64_t(8) << 20;

// Whether launch_scatter_rows is to run. Lists have an entry for each row of the target.
bool adds_by_rows(const ScatterAddCall& call, const ScatterTypes& types, const ScatterArgs& args) {
  const Array &target = call.target, &values = call.values;
  const int64_t most = int64_t(1) << 31, slice_bytes = args.inner * values.itemsize();
  if (!is_float(target.dtype()) || args.outer != 1 || slice_bytes % 16 != 0) return false;
  const uintptr_t pack = 16 * uintptr_t(target.itemsize() / values.itemsize());
  if (!aligned16(args.values) || reinterpret_cast<uintptr_t>(args.target) % pack != 0) return false;
  if (args.extent >= most || args.positions.count >= most) return false;
  if (call.accumulate && args.extent > 64 * args.positions.count) return false;
  if (values.itemsize() == 2) return scatter_wants_sorted(types, false, args);
  return !call.accumulate && args.extent * slice_bytes >= kManyBytes;
}

void clear(const Array& target, const Launch& launch) {
  const size_t bytes = size_t(target.size() * target.itemsize());
  CATENA_CUDA_CHECK(cudaMemsetAsync(target.raw_data(), 0, bytes, launch.stream));
}

ScatterTypes types_of(const Array& target, const Array& values) {
  CATENA_CHECK(DtypeError,
               target.dtype() == values.dtype() ||
                   (target.dtype() == Dtype::kFloat32 && is_narrow_float(values.dtype())),
               "scatter_add: values of ", values.dtype(), " cannot be added to ", target.dtype());
  return {static_cast<Element>(target.dtype()), static_cast<Element>(values.dtype())};
}

void scatter_add(const ScatterAddCall& call) {
  const auto& [target, indices, values, accumulate, ids] = call;
  if (target.size() == 0 || (accumulate && values.size() == 0)) return;
  const Launch launch = launch_for(target);
  if (values.size() == 0) return clear(target, launch);
  const ScatterTypes types = types_of(target, values);
  const bool ordered = config().deterministic;
  ScatterArgs args{};
  args.target = target.raw_data();
  args.values = values.raw_data();
  args.positions = positions_of(indices, false, ids);
  args.outer = target.shape()[0];
  args.extent = target.shape()[1];
  args.inner = target.shape()[2];
  if (!ordered && adds_by_rows(call, types, args)) {
    const Array scratch =
        Array::uninitialized({row_list_words(args)}, Dtype::kUInt32, target.device());
    launch_scatter_rows(types, accumulate, args, scratch.data<uint32_t>(), launch);
    return check_launch("scatter_add");
  }
  SortedPositions sorted;
  if (scatter_wants_sorted(types, ordered, args)) {
    sorted = sort_positions(target, args, launch);
    args.sorted = sorted.places.raw_data();
    args.numbers = sorted.numbers.data<int64_t>();
  }
  if (!accumulate) clear(target, launch);
  launch_scatter_add(types, ordered, args, launch);
  check_launch("scatter_add");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, indexing) {
  kernels::take.provide<&gpu::take>(DeviceType::kCuda, "cuda");
  kernels::scatter_add.provide<&gpu::scatter_add>(DeviceType::kCuda, "cuda");
}
