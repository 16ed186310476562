// Adds slices to target elements along one axis, in one of three ways. Atomic additions are used if
// the type has them and any order will do. Otherwise slices are added in the order of the
// positions: each target scans all positions if that is little work, else the positions are sorted.
#include <type_traits>

#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/index/indexing.h"
#include "backends/cuda/index/positions.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// S: the type in which elements of T are summed.
template <class T>
struct Adder {
  using S = T;
  static __device__ S load(T v) { return v; }
  static __device__ T store(S v) { return v; }
  static __device__ S add(S a, S b) { return S(a + b); }
};
template <class T>
struct AdderInFloat {
  using S = float;
  static __device__ float load(T v) { return widen(v); }
  static __device__ T store(float v) { return Narrow<T>::from(v); }
  static __device__ float add(float a, float b) { return a + b; }
};
template <>
struct Adder<__half> : AdderInFloat<__half> {};
template <>
struct Adder<__nv_bfloat16> : AdderInFloat<__nv_bfloat16> {};
template <>
struct Adder<bool> {
  using S = bool;
  static __device__ bool load(bool v) { return v; }
  static __device__ bool store(bool v) { return v; }
  static __device__ bool add(bool a, bool b) { return a || b; }
};

// ---- any order ----------------------------------------------------------------------------------

__device__ inline void atomic_add(float* to, float v) { atomicAdd(to, v); }
__device__ inline void atomic_add(double* to, double v) { atomicAdd(to, v); }
__device__ inline void atomic_add(int32_t* to, int32_t v) { atomicAdd(to, v); }
__device__ inline void atomic_add(int64_t* to, int64_t v) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(v));
}
__device__ inline void atomic_add(float4* to, float4 v) {
#if __CUDA_ARCH__ >= 900
  atomicAdd(to, v);
#else
  atomicAdd(&to->x, v.x);
  atomicAdd(&to->y, v.y);
  atomicAdd(&to->z, v.z);
  atomicAdd(&to->w, v.w);
#endif
}

constexpr int kAddsInFlight = 4;

// A thread adds kAddsInFlight units of the values, one block apart, so that all their positions and
// then all their values are loaded at once. `units` is the number of units in a slice.
template <class Unit, class I, class By>
__global__ void __launch_bounds__(kThreads)
    atomic_kernel(ScatterArgs args, By by_units, By by_count, int64_t units, int64_t total) {
  wait_for_previous_kernel();
  using N = typename By::Place;
  const I* positions = static_cast<const I*>(args.positions.data);
  const Unit* values = static_cast<const Unit*>(args.values);
  Unit* target = static_cast<Unit*>(args.target);
  const int64_t step = int64_t(gridDim.x) * kThreads * kAddsInFlight;
  for (int64_t start = int64_t(blockIdx.x) * kThreads * kAddsInFlight + threadIdx.x; start < total;
       start += step) {
    Unit value[kAddsInFlight];
    int64_t place[kAddsInFlight];
#pragma unroll
    for (int u = 0; u < kAddsInFlight; ++u) {
      const int64_t i = start + u * kThreads;
      if (i >= total) break;
      N unit, j;
      const N row = by_count(by_units(N(i), unit), j);
      const int64_t p = resolve(positions[j], args.extent, args.positions);
      place[u] = p < 0 ? p : (int64_t(row) * args.extent + p) * units + int64_t(unit);
      value[u] = values[i];
    }
#pragma unroll
    for (int u = 0; u < kAddsInFlight; ++u) {
      if (start + u * kThreads < total && place[u] >= 0) atomic_add(target + place[u], value[u]);
    }
  }
}

template <class Unit, class I>
void launch_atomic_units(const ScatterArgs& args, int64_t units, const Launch& launch) {
  const int64_t count = args.positions.count, total = args.outer * count * units;
  const unsigned blocks = loop_blocks(total, kThreads * kAddsInFlight, launch, 32);
  with_dividers(total, units, count, [&](auto by_units, auto by_count) {
    launch_kernel<atomic_kernel<Unit, I, decltype(by_units)>>(blocks, kThreads, launch, args,
                                                              by_units, by_count, units, total);
  });
}

template <class T, class I>
void launch_atomic(const ScatterArgs& args, const Launch& launch) {
  if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T>) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(args.target) |
                           reinterpret_cast<uintptr_t>(args.values) | uintptr_t(args.inner * 4);
    if (bits % 16 == 0) return launch_atomic_units<float4, I>(args, args.inner / 4, launch);
  }
  launch_atomic_units<T, I>(args, args.inner, launch);
}

// ---- in order -----------------------------------------------------------------------------------

constexpr int kChunk = 128;  // elements of a slice that one warp sums at a time

// The sums of one warp over its chunk of a target slice. Element q * 32 + lane belongs to the lane.
// V: the type of the values.
template <class T, class V>
struct ChunkSums {
  using A = Adder<T>;
  typename A::S sums[kChunk / 32];
  int lane, width;

  __device__ ChunkSums(const T* to, int64_t inner, int64_t first) {
    lane = threadIdx.x % 32;
    width = int(inner - first < kChunk ? inner - first : kChunk);
#pragma unroll
    for (int q = 0; q < kChunk / 32; ++q)
      sums[q] = valid(q) ? A::load(to[q * 32 + lane]) : typename A::S(0);
  }
  __device__ bool valid(int q) const { return q * 32 + lane < width; }
  __device__ void add(const V* from) {
#pragma unroll
    for (int q = 0; q < kChunk / 32; ++q)
      if (valid(q)) sums[q] = A::add(sums[q], Adder<V>::load(from[q * 32 + lane]));
  }
  __device__ void store(T* to) const {
#pragma unroll
    for (int q = 0; q < kChunk / 32; ++q)
      if (valid(q)) to[q * 32 + lane] = A::store(sums[q]);
  }
};

// The chunks of a slice are distributed over the grid's y, which has at most 65535 blocks.
template <class F>
__device__ void for_chunks(int64_t inner, const F& f) {
  for (int64_t first = int64_t(blockIdx.y) * kChunk; first < inner;
       first += int64_t(gridDim.y) * kChunk)
    f(first);
}
unsigned chunk_blocks(int64_t inner) {
  const int64_t chunks = (inner + kChunk - 1) / kChunk;
  return unsigned(chunks < 65535 ? chunks : 65535);
}

// A warp for each slice of the target. It scans the positions in order, 32 at a time, and adds the
// slices that belong to its target.
template <class T, class V, class I>
__global__ void __launch_bounds__(kThreads) searching_kernel(ScatterArgs args) {
  wait_for_previous_kernel();
  const I* positions = static_cast<const I*>(args.positions.data);
  const int lane = threadIdx.x % 32;
  const int64_t slices = args.outer * args.extent, count = args.positions.count;
  for (int64_t s = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; s < slices;
       s += int64_t(gridDim.x) * kWarps) {
    const int64_t row = s / args.extent, own = s % args.extent;
    const V* values = static_cast<const V*>(args.values) + row * count * args.inner;
    for_chunks(args.inner, [&](int64_t first) {
      T* to = static_cast<T*>(args.target) + s * args.inner + first;
      ChunkSums<T, V> sums(to, args.inner, first);
      bool touched = false;
      for (int64_t j0 = 0; j0 < count; j0 += 32) {
        const int64_t j = j0 + lane;
        const bool match = j < count && resolve(positions[j], args.extent, args.positions) == own;
        unsigned matches = __ballot_sync(kAllLanes, match);
        touched = touched || matches != 0;
        for (; matches; matches &= matches - 1)
          sums.add(values + (j0 + __ffs(int(matches)) - 1) * args.inner + first);
      }
      if (touched) sums.store(to);
    });
  }
}

// Of the sorted positions from `j` on, the numbers of up to 32 that equal `own`; lane l has the
// l-th.
struct Run {
  int length;
  int64_t number;
};
template <class K>
__device__ Run run_from(const ScatterArgs& args, int64_t j, K own, int lane) {
  const K* sorted = static_cast<const K*>(args.sorted);
  const int64_t mine = j + lane;
  const bool same = mine < args.positions.count && sorted[mine] == own;
  const unsigned ended = ~__ballot_sync(kAllLanes, same);
  return {ended ? __ffs(int(ended)) - 1 : 32, same ? args.numbers[mine] : 0};
}

// A warp for each run of equal positions and chunk of their slices, for slices that are not short.
template <class T, class V, class K>
__global__ void __launch_bounds__(kThreads) sorted_kernel(ScatterArgs args) {
  wait_for_previous_kernel();
  const K* sorted = static_cast<const K*>(args.sorted);
  const int lane = threadIdx.x % 32;
  const int64_t count = args.positions.count;
  for (int64_t w = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; w < args.outer * count;
       w += int64_t(gridDim.x) * kWarps) {
    const int64_t row = w / count, begin = w - row * count;
    const K own = sorted[begin];
    if (begin > 0 && sorted[begin - 1] == own) continue;  // not the beginning of a run
    if (int64_t(own) == args.extent) continue;            // left out
    const V* slices = static_cast<const V*>(args.values) + row * count * args.inner;
    T* slice = static_cast<T*>(args.target) + (row * args.extent + int64_t(own)) * args.inner;
    for_chunks(args.inner, [&](int64_t first) {
      ChunkSums<T, V> sums(slice + first, args.inner, first);
      Run run;
      int64_t j = begin;
      do {
        run = run_from(args, j, own, lane);
#pragma unroll 4
        for (int r = 0; r < run.length; ++r)
          sums.add(slices + __shfl_sync(kAllLanes, run.number, r) * args.inner + first);
        j += 32;
      } while (run.length == 32);
      sums.store(slice + first);
    });
  }
}

// The same for short slices: the lanes load the elements of 32 slices at once, which are then added
// in order.
template <class T, class V, class K>
__global__ void __launch_bounds__(kThreads) sorted_short_kernel(ScatterArgs args) {
  wait_for_previous_kernel();
  using A = Adder<T>;
  const K* sorted = static_cast<const K*>(args.sorted);
  const int lane = threadIdx.x % 32;
  const int64_t count = args.positions.count;
  for (int64_t w = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; w < args.outer * count;
       w += int64_t(gridDim.x) * kWarps) {
    const int64_t row = w / count, begin = w - row * count;
    const K own = sorted[begin];
    if ((begin > 0 && sorted[begin - 1] == own) || int64_t(own) == args.extent) continue;
    const V* values = static_cast<const V*>(args.values) + row * count * args.inner;
    T* to = static_cast<T*>(args.target) + (row * args.extent + int64_t(own)) * args.inner;
    for (int64_t k = 0; k < args.inner; ++k) {
      typename A::S sum = A::load(to[k]);
      Run run;
      int64_t j = begin;
      do {
        run = run_from(args, j, own, lane);
        const typename A::S value = lane < run.length
                                        ? Adder<V>::load(values[run.number * args.inner + k])
                                        : typename A::S(0);
        for (int r = 0; r < run.length; ++r) sum = A::add(sum, __shfl_sync(kAllLanes, value, r));
        j += 32;
      } while (run.length == 32);
      if (lane == 0) to[k] = A::store(sum);
    }
  }
}

unsigned warp_blocks(int64_t units) {
  const int64_t wanted = (units + kWarps - 1) / kWarps, most = int64_t(1) << 30;
  return unsigned(wanted < most ? wanted : most);
}

constexpr int kShortSlice = 16;

template <class T, class V, class K>
void launch_sorted(const ScatterArgs& args, const Launch& launch) {
  const unsigned blocks = warp_blocks(args.outer * args.positions.count);
  if (args.inner < kShortSlice) {
    launch_kernel<sorted_short_kernel<T, V, K>>(blocks, kThreads, launch, args);
  } else {
    const dim3 grid(blocks, chunk_blocks(args.inner));
    launch_kernel<sorted_kernel<T, V, K>>(grid, kThreads, launch, args);
  }
}

template <class T, class I, class V = T>
void launch_in_order(const ScatterArgs& args, const Launch& launch) {
  if (!args.sorted) {
    const dim3 grid(warp_blocks(args.outer * args.extent), chunk_blocks(args.inner));
    launch_kernel<searching_kernel<T, V, I>>(grid, kThreads, launch, args);
  } else if (sorted_positions_are_wide(args.extent)) {
    launch_sorted<T, V, int64_t>(args, launch);
  } else {
    launch_sorted<T, V, uint32_t>(args, launch);
  }
}

template <class I>
void launch_positions(const ScatterTypes& types, bool ordered, const ScatterArgs& args,
                      const Launch& launch) {
  if (types.widens()) {
    return types.values == Element::kFloat16
               ? launch_in_order<float, I, __half>(args, launch)
               : launch_in_order<float, I, __nv_bfloat16>(args, launch);
  }
  switch (types.target) {
    case Element::kFloat16: return launch_in_order<__half, I>(args, launch);
    case Element::kBFloat16: return launch_in_order<__nv_bfloat16, I>(args, launch);
    case Element::kFloat32:
      return ordered ? launch_in_order<float, I>(args, launch)
                     : launch_atomic<float, I>(args, launch);
    case Element::kFloat64:
      return ordered ? launch_in_order<double, I>(args, launch)
                     : launch_atomic<double, I>(args, launch);
    case Element::kInt8:
    case Element::kUInt8: return launch_in_order<uint8_t, I>(args, launch);
    case Element::kInt16:
    case Element::kUInt16: return launch_in_order<uint16_t, I>(args, launch);
    case Element::kInt32:
    case Element::kUInt32: return launch_atomic<int32_t, I>(args, launch);
    case Element::kInt64:
    case Element::kUInt64: return launch_atomic<int64_t, I>(args, launch);
    case Element::kBool: return launch_in_order<bool, I>(args, launch);
  }
}

// Positions as numbers from 0, which can be sorted; those left out come last.
template <class I, class K>
__global__ void resolve_kernel(Positions positions, int64_t extent, K* places) {
  wait_for_previous_kernel();
  const I* data = static_cast<const I*>(positions.data);
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < positions.count;
       i += int64_t(gridDim.x) * kThreads) {
    const int64_t p = resolve(data[i], extent, positions);
    places[i] = K(p < 0 ? extent : p);
  }
}

template <class I>
void resolve_to(const Positions& positions, int64_t extent, void* places, const Launch& launch) {
  const unsigned blocks = loop_blocks(positions.count, kThreads, launch);
  if (sorted_positions_are_wide(extent))
    launch_kernel<resolve_kernel<I, int64_t>>(blocks, kThreads, launch, positions, extent,
                                              static_cast<int64_t*>(places));
  else
    launch_kernel<resolve_kernel<I, uint32_t>>(blocks, kThreads, launch, positions, extent,
                                               static_cast<uint32_t*>(places));
}

}  // namespace

// From about 2^20 scans of 32 positions on, sorting takes less time.
constexpr int64_t kManyLooks = int64_t(1) << 20;

bool scatter_wants_sorted(const ScatterTypes& types, bool ordered, const ScatterArgs& args) {
  const Element type = types.values;
  const bool integer = type == Element::kInt32 || type == Element::kUInt32 ||
                       type == Element::kInt64 || type == Element::kUInt64;
  const bool wide_float = type == Element::kFloat32 || type == Element::kFloat64;
  if (integer || (wide_float && !ordered)) return false;
  const int64_t chunks = (args.inner + kChunk - 1) / kChunk;
  const int64_t looks = (args.positions.count + 31) / 32;
  return args.outer * args.extent > kManyLooks / (looks * chunks);
}

void launch_resolve_positions(const Positions& positions, int64_t extent, void* places,
                              const Launch& launch) {
  if (positions.wide)
    resolve_to<int64_t>(positions, extent, places, launch);
  else
    resolve_to<int32_t>(positions, extent, places, launch);
}

void launch_scatter_add(const ScatterTypes& types, bool ordered, const ScatterArgs& args,
                        const Launch& launch) {
  if (args.positions.wide)
    launch_positions<int64_t>(types, ordered, args, launch);
  else
    launch_positions<int32_t>(types, ordered, args, launch);
}

}  // namespace catena::gpu
