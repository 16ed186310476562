// Gather and scatter of slices along one axis.
#include "backends/cuda/float_access.cuh"
#include "backends/cuda/indexing.h"
#include "backends/cuda/positions.cuh"
#define CATENA_FN __host__ __device__ inline
#include "kernels/index.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kChunk = 128;  // elements of a slice that one warp adds up at a time

// Divides places of the output; 32-bit ones by a multiplication.
struct Narrow32 {
  using Place = uint32_t;
  jit::Divider divider;
  __device__ uint32_t operator()(uint32_t n, uint32_t& rest) const {
    return jit::divide(n, divider, rest);
  }
};
struct Wide {
  using Place = int64_t;
  int64_t divisor;
  __device__ int64_t operator()(int64_t n, int64_t& rest) const {
    rest = n % divisor;
    return n / divisor;
  }
};

constexpr int kTakeInFlight = 4, kColumnsInFlight = 8;

// A thread computes kTakeInFlight units of the output, which lie a block apart, so that their
// positions and then their values are loaded together.
template <class Unit, class I, class By>
__global__ void __launch_bounds__(kThreads)
    take_kernel(TakeArgs args, By by_units, By by_count, int64_t units, int64_t total) {
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
      const int64_t p = resolve(positions[j], args.extent, args.positions.clip);
      value[u] = source[(int64_t(row) * args.extent + p) * units + int64_t(unit)];
    }
#pragma unroll
    for (int u = 0; u < kTakeInFlight; ++u) {
      if (start + u * kThreads < total) output[start + u * kThreads] = value[u];
    }
  }
}

// The same where many rows share few columns (units of the chosen slices): a thread keeps a column,
// whose place in a source row it works out once, and goes down the rows. 2^shift threads of a block
// lie along the columns.
template <class Unit, class I>
__global__ void __launch_bounds__(kThreads)
    take_columns_kernel(TakeArgs args, int64_t units, int shift, int64_t block_rows) {
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

// How take_columns_kernel cuts its work; not `fits` where too many of its threads would be idle.
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
  if (plan.fits) {
    take_columns_kernel<Unit, I>
        <<<dim3(plan.column_blocks, plan.row_blocks), kThreads, 0, launch.stream>>>(
            args, units, plan.shift, plan.block_rows);
    return;
  }
  const int64_t total = args.outer * count * units;
  const int64_t wanted = (total + kThreads * kTakeInFlight - 1) / (kThreads * kTakeInFlight),
                most = int64_t(launch.multiprocessors) * 32;
  const unsigned blocks = unsigned(wanted < most ? wanted : most);
  if (total < (int64_t(1) << 31)) {
    const Narrow32 by_units{jit::make_divider(uint32_t(units))},
        by_count{jit::make_divider(uint32_t(count))};
    take_kernel<Unit, I>
        <<<blocks, kThreads, 0, launch.stream>>>(args, by_units, by_count, units, total);
  } else {
    take_kernel<Unit, I>
        <<<blocks, kThreads, 0, launch.stream>>>(args, Wide{units}, Wide{count}, units, total);
  }
}

template <class I>
void launch_take_positions(const TakeArgs& args, const Launch& launch) {
  switch (args.unit) {
    case 16:
      return launch_take_units<uint4, I>(args, launch);
    case 8:
      return launch_take_units<uint2, I>(args, launch);
    case 4:
      return launch_take_units<uint32_t, I>(args, launch);
    case 2:
      return launch_take_units<uint16_t, I>(args, launch);
    default:
      return launch_take_units<uint8_t, I>(args, launch);
  }
}

template <class T>
struct Adder {
  using S = T;
  static __device__ S load(T v) { return v; }
  static __device__ T store(S v) { return v; }
  static __device__ S add(S a, S b) { return S(a + b); }
};
template <>
struct Adder<__half> {
  using S = float;
  static __device__ float load(__half v) { return widen(v); }
  static __device__ __half store(float v) { return Narrow<__half>::from(v); }
  static __device__ float add(float a, float b) { return a + b; }
};
template <>
struct Adder<__nv_bfloat16> {
  using S = float;
  static __device__ float load(__nv_bfloat16 v) { return widen(v); }
  static __device__ __nv_bfloat16 store(float v) { return Narrow<__nv_bfloat16>::from(v); }
  static __device__ float add(float a, float b) { return a + b; }
};
template <>
struct Adder<bool> {
  using S = bool;
  static __device__ bool load(bool v) { return v; }
  static __device__ bool store(bool v) { return v; }
  static __device__ bool add(bool a, bool b) { return a || b; }
};

// A warp a slice of the target: it looks through the positions in order, 32 at a time, and adds the
// slices that belong here.
template <class T, class I>
__global__ void ordered_scatter_kernel(ScatterArgs args) {
  using A = Adder<T>;
  using S = typename A::S;
  const I* positions = static_cast<const I*>(args.positions.data);
  const T* values = static_cast<const T*>(args.values);
  T* target = static_cast<T*>(args.target);
  const int lane = threadIdx.x % 32;
  const int64_t slices = args.outer * args.extent, count = args.positions.count;
  const int64_t first = int64_t(blockIdx.y) * kChunk;
  const int width = int(args.inner - first < kChunk ? args.inner - first : kChunk);
  for (int64_t s = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; s < slices;
       s += int64_t(gridDim.x) * kWarps) {
    const int64_t row = s / args.extent, own = s % args.extent;
    T* to = target + s * args.inner + first;
    S sums[kChunk / 32];
    for (int q = 0; q < kChunk / 32; ++q) {
      const int k = q * 32 + lane;
      sums[q] = k < width ? A::load(to[k]) : S(0);
    }
    bool touched = false;
    for (int64_t j0 = 0; j0 < count; j0 += 32) {
      const int64_t j = j0 + lane;
      const bool match = j < count && resolve(positions[j], args.extent, false) == own;
      unsigned matches = __ballot_sync(0xffffffffu, match);
      touched = touched || matches != 0;
      for (; matches; matches &= matches - 1) {
        const T* from = values + (row * count + j0 + __ffs(int(matches)) - 1) * args.inner + first;
        for (int q = 0; q < kChunk / 32; ++q) {
          const int k = q * 32 + lane;
          if (k < width) sums[q] = A::add(sums[q], A::load(from[k]));
        }
      }
    }
    if (!touched) continue;
    for (int q = 0; q < kChunk / 32; ++q) {
      const int k = q * 32 + lane;
      if (k < width) to[k] = A::store(sums[q]);
    }
  }
}

__device__ inline void atomic_add(float* to, float v) { atomicAdd(to, v); }
__device__ inline void atomic_add(double* to, double v) { atomicAdd(to, v); }
__device__ inline void atomic_add(int32_t* to, int32_t v) { atomicAdd(to, v); }
__device__ inline void atomic_add(int64_t* to, int64_t v) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(v));
}

template <class T, class I>
__global__ void atomic_scatter_kernel(ScatterArgs args) {
  const I* positions = static_cast<const I*>(args.positions.data);
  const T* values = static_cast<const T*>(args.values);
  const int64_t count = args.positions.count, total = args.outer * count * args.inner;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < total; i += stride) {
    const int64_t slice = i / args.inner, k = i % args.inner;
    const int64_t p = resolve(positions[slice % count], args.extent, false);
    atomic_add(static_cast<T*>(args.target) + (slice / count * args.extent + p) * args.inner + k,
               values[i]);
  }
}

template <class T, class I>
void launch_ordered(const ScatterArgs& args, const Launch& launch) {
  const int64_t wanted = (args.outer * args.extent + kWarps - 1) / kWarps, most = int64_t(1) << 30;
  const dim3 grid(unsigned(wanted < most ? wanted : most),
                  unsigned((args.inner + kChunk - 1) / kChunk));
  ordered_scatter_kernel<T, I><<<grid, kThreads, 0, launch.stream>>>(args);
}

template <class T, class I>
void launch_atomic(const ScatterArgs& args, const Launch& launch) {
  const int64_t total = args.outer * args.positions.count * args.inner;
  const int64_t wanted = (total + kThreads - 1) / kThreads,
                most = int64_t(launch.multiprocessors) * 32;
  atomic_scatter_kernel<T, I>
      <<<unsigned(wanted < most ? wanted : most), kThreads, 0, launch.stream>>>(args);
}

template <class I>
void launch_scatter_positions(ScatterType type, bool ordered, const ScatterArgs& args,
                              const Launch& launch) {
  switch (type) {
    case ScatterType::kF16:
      return launch_ordered<__half, I>(args, launch);
    case ScatterType::kBf16:
      return launch_ordered<__nv_bfloat16, I>(args, launch);
    case ScatterType::kF32:
      return ordered ? launch_ordered<float, I>(args, launch)
                     : launch_atomic<float, I>(args, launch);
    case ScatterType::kF64:
      return ordered ? launch_ordered<double, I>(args, launch)
                     : launch_atomic<double, I>(args, launch);
    case ScatterType::kI8:
      return launch_ordered<uint8_t, I>(args, launch);
    case ScatterType::kI16:
      return launch_ordered<uint16_t, I>(args, launch);
    case ScatterType::kI32:
      return launch_atomic<int32_t, I>(args, launch);
    case ScatterType::kI64:
      return launch_atomic<int64_t, I>(args, launch);
    case ScatterType::kBool:
      return launch_ordered<bool, I>(args, launch);
  }
}

}  // namespace

void launch_take(const TakeArgs& args, const Launch& launch) {
  if (args.positions.wide)
    launch_take_positions<int64_t>(args, launch);
  else
    launch_take_positions<int32_t>(args, launch);
}

void launch_scatter_add(ScatterType type, bool ordered, const ScatterArgs& args,
                        const Launch& launch) {
  if (args.positions.wide)
    launch_scatter_positions<int64_t>(type, ordered, args, launch);
  else
    launch_scatter_positions<int32_t>(type, ordered, args, launch);
}

}  // namespace catena::gpu
