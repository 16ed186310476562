// Gather of slices along one axis.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/index/indexing.h"
#include "backends/cuda/index/positions.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kTakeInFlight = 4, kColumnsInFlight = 8;

// What a unit of no slice holds.
template <class Unit>
__device__ Unit without_slice(int64_t place) {
  Unit unit;
  memset(&unit, place == kIgnored ? 0 : 0xff, sizeof(Unit));
  return unit;
}

// A thread computes kTakeInFlight units of the output, one block apart, so that all their positions
// and then all their values are loaded at once.
template <class Unit, class I, class By>
__global__ void __launch_bounds__(kThreads)
    take_kernel(TakeArgs args, By by_units, By by_count, int64_t units, int64_t total) {
  wait_for_previous_kernel();
  using N = typename By::Place;
  const I* positions = static_cast<const I*>(args.positions.data);
  const Unit* source = static_cast<const Unit*>(args.source);
  Unit* output = static_cast<Unit*>(args.output);
  const int64_t step = int64_t(gridDim.x) * kThreads * kTakeInFlight;
  for (int64_t start = int64_t(blockIdx.x) * kThreads * kTakeInFlight + threadIdx.x; start < total;
       start += step) {
    Unit value[kTakeInFlight];
#pragma unroll
    for (int u = 0; u < kTakeInFlight; ++u) {
      const int64_t i = start + u * kThreads;
      if (i >= total) break;
      N unit, j;
      const N row = by_count(by_units(N(i), unit), j);
      const int64_t p = resolve(positions[j], args.extent, args.positions);
      value[u] = p < 0 ? without_slice<Unit>(p)
                       : source[(int64_t(row) * args.extent + p) * units + int64_t(unit)];
    }
#pragma unroll
    for (int u = 0; u < kTakeInFlight; ++u) {
      if (start + u * kThreads < total) output[start + u * kThreads] = value[u];
    }
  }
}

// The same where many rows share few columns (units of the chosen slices). A thread keeps one
// column, computes its place in a source row once, and moves down the rows. 2^shift threads of a
// block are side by side along the columns. Not for strict positions.
template <class Unit, class I>
__global__ void __launch_bounds__(kThreads)
    take_columns_kernel(TakeArgs args, int64_t units, int shift, int64_t block_rows) {
  wait_for_previous_kernel();
  const int width = 1 << shift, height = kThreads >> shift;
  const int64_t columns = args.positions.count * units;
  const int64_t column = int64_t(blockIdx.x) * width + (threadIdx.x & (width - 1));
  if (column >= columns) return;
  const I* positions = static_cast<const I*>(args.positions.data);
  const int64_t p = resolve(positions[column / units], args.extent, args.positions.clip);
  const int64_t row = int64_t(blockIdx.y) * block_rows + (threadIdx.x >> shift);
  const int64_t end = (int64_t(blockIdx.y) + 1) * block_rows;
  const int64_t rows = (end < args.outer ? end : args.outer) - row;
  const int64_t from_step = height * args.extent * units, to_step = height * columns;
  const Unit* from =
      static_cast<const Unit*>(args.source) + (row * args.extent + p) * units + column % units;
  Unit* to = static_cast<Unit*>(args.output) + row * columns + column;
  for (int64_t r = 0; r < rows; r += kColumnsInFlight * height) {
    Unit value[kColumnsInFlight];
#pragma unroll
    for (int u = 0; u < kColumnsInFlight; ++u)
      if (r + u * height < rows) value[u] = from[u * from_step];
#pragma unroll
    for (int u = 0; u < kColumnsInFlight; ++u)
      if (r + u * height < rows) to[u * to_step] = value[u];
    from += kColumnsInFlight * from_step;
    to += kColumnsInFlight * to_step;
  }
}

// How take_columns_kernel divides its work. `fits` is false if too many of its threads would be
// idle.
struct ColumnsPlan {
  bool fits = false;
  int shift = 8;
  unsigned column_blocks = 1, row_blocks = 1;
  int64_t block_rows = 1;
};
ColumnsPlan plan_columns(int64_t columns, int64_t rows, int multiprocessors) {
  ColumnsPlan plan;
  while (plan.shift > 5 && columns <= (1 << (plan.shift - 1))) --plan.shift;
  const int64_t width = int64_t(1) << plan.shift, across = (columns + width - 1) / width;
  if (rows < 64 || columns * 4 < across * width * 3 || across > (1 << 30)) return plan;
  const int64_t step = (kThreads >> plan.shift) * kColumnsInFlight;
  const int64_t wanted = (int64_t(multiprocessors) * 32 + across - 1) / across;
  const int64_t each = (rows + wanted - 1) / wanted;
  plan.block_rows = (each + step - 1) / step * step;
  const int64_t down = (rows + plan.block_rows - 1) / plan.block_rows;
  plan.column_blocks = unsigned(across);
  plan.row_blocks = unsigned(down);
  plan.fits = down <= 65535;
  return plan;
}

template <class Unit, class I>
void launch_take_units(const TakeArgs& args, const Launch& launch) {
  const int64_t units = args.slice_bytes / int64_t(sizeof(Unit)), count = args.positions.count;
  const ColumnsPlan plan = plan_columns(count * units, args.outer, launch.multiprocessors);
  if (plan.fits && !args.positions.strict) {
    launch_kernel<take_columns_kernel<Unit, I>>(dim3(plan.column_blocks, plan.row_blocks), kThreads,
                                                launch, args, units, plan.shift, plan.block_rows);
    return;
  }
  const int64_t total = args.outer * count * units;
  const unsigned blocks = loop_blocks(total, kThreads * kTakeInFlight, launch, 32);
  with_dividers(total, units, count, [&](auto by_units, auto by_count) {
    launch_kernel<take_kernel<Unit, I, decltype(by_units)>>(blocks, kThreads, launch, args,
                                                            by_units, by_count, units, total);
  });
}

template <class I>
void launch_take_positions(const TakeArgs& args, const Launch& launch) {
  switch (args.unit) {
    case 16: return launch_take_units<uint4, I>(args, launch);
    case 8: return launch_take_units<uint2, I>(args, launch);
    case 4: return launch_take_units<uint32_t, I>(args, launch);
    case 2: return launch_take_units<uint16_t, I>(args, launch);
    default: return launch_take_units<uint8_t, I>(args, launch);
  }
}

}  // namespace

void launch_take(const TakeArgs& args, const Launch& launch) {
  if (args.positions.wide)
    launch_take_positions<int64_t>(args, launch);
  else
    launch_take_positions<int32_t>(args, launch);
}

}  // namespace catena::gpu
