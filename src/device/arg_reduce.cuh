// Positions of extreme elements along one axis. NVRTC only; the text before this file defines
// Input. NaN counts as extreme, and the first of equal elements wins, so the order of combining
// does not matter.
#pragma once

#include "device/args.h"
#include "device/prelude.cuh"
#include "device/shuffle.cuh"

namespace catena {
namespace jit {

struct Candidate {
  int64_t position;  // -1: none yet
  typename Compute<Input>::type value;
};

CATENA_FN Candidate better(const Candidate& a, const Candidate& b, bool maximum) {
  if (a.position < 0) return b;
  if (b.position < 0) return a;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan ? a : b;
  if (a_nan || a.value == b.value) return a.position < b.position ? a : b;
  return (a.value > b.value) == maximum ? a : b;
}

// The best of 2^shift adjacent threads, valid in the first of them. All threads of the block must
// take part.
CATENA_FN Candidate best_of_group(Candidate x, int shift, bool maximum) {
  __shared__ Candidate warps[kReduceThreads / 32];
  const int group = 1 << shift;
  for (int distance = (group < 32 ? group : 32) / 2; distance > 0; distance /= 2)
    x = better(x, shuffle_down(x, distance), maximum);
  if (group > 32) {
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x % group == 0) {
      for (int w = 1; w < group / 32; ++w) x = better(x, warps[threadIdx.x / 32 + w], maximum);
    }
  }
  return x;
}

CATENA_FN void store_position(const ReduceArgs& a, int64_t output, int64_t position) {
  int64_t offset = 0;
  uint32_t rest = uint32_t(output);
  for (int d = 0; d < a.kept_dims; ++d) {
    uint32_t at;
    rest = divide(rest, a.kept[d], at);
    offset += at * a.result_stride[d];
  }
  *reinterpret_cast<int64_t*>(static_cast<char*>(a.output) + offset) = position;
}

constexpr int kArgVector = 16 / int(sizeof(Input)), kArgInFlight = 4;
template <int kCount>
union ArgVector {
  uint4 raw;
  Input value[kCount];
  CATENA_FN void load(const char* p) {
    if constexpr (kCount == kArgVector)
      raw = *reinterpret_cast<const uint4*>(p);
    else
      value[0] = *reinterpret_cast<const Input*>(p);
  }
};

// The best of one thread's elements, which are visited in ascending order from element `begin` of
// the axis on. Positions count from there: 32 bits are enough for a split.
struct Best {
  typename Compute<Input>::type value;
  int position;  // -1: none yet

  CATENA_FN void start(int at, Input x) {
    value = widen(x);
    position = at;
  }
  // A later element replaces the best one only if it is better; nothing is better than NaN. Must
  // follow start().
  template <bool kMaximum>
  CATENA_FN void take(int at, Input x) {
    const typename Compute<Input>::type other = widen(x);
    const bool worse = kMaximum ? other <= value : other >= value;
    if (!worse && value == value) {
      value = other;
      position = at;
    }
  }
  CATENA_FN Candidate candidate(int64_t begin) const {
    const Candidate x = {position < 0 ? -1 : begin + position, value};
    return x;
  }
};

CATENA_FN int split_count(const ReduceArgs& a, int64_t begin) {
  return int(begin + a.per_split < a.reduced ? a.per_split : a.reduced - begin);
}

// One thread's share of the `count` elements of an output in one split.
template <bool kMaximum>
CATENA_FN Best best_of_range(const ReduceArgs& a, const char* p, int count, int lane, int group) {
  Best x = {0, -1};
  int r = lane;
  if (a.vectors) {
    const int vectors = count / kArgVector;
    if (lane < vectors)
      x.start(lane * kArgVector, reinterpret_cast<const Input*>(p)[lane * kArgVector]);
#pragma unroll 1
    for (int i = lane; i < vectors; i += kArgInFlight * group) {
      ArgVector<kArgVector> loaded[kArgInFlight];
#pragma unroll
      for (int u = 0; u < kArgInFlight; ++u)
        if (i + u * group < vectors) loaded[u].load(p + int64_t(i + u * group) * 16);
#pragma unroll
      for (int u = 0; u < kArgInFlight; ++u) {
        if (i + u * group >= vectors) break;
#pragma unroll
        for (int v = 0; v < kArgVector; ++v)
          x.template take<kMaximum>((i + u * group) * kArgVector + v, loaded[u].value[v]);
      }
    }
    r = vectors * kArgVector + lane;
  }
  const auto element = [&](int at) {
    return *reinterpret_cast<const Input*>(p + at * a.reduced_stride[0]);
  };
  if (x.position < 0 && r < count) x.start(r, element(r));
#pragma unroll 1
  for (; r < count; r += kArgInFlight * group) {
    Input loaded[kArgInFlight];
#pragma unroll
    for (int u = 0; u < kArgInFlight; ++u)
      if (r + u * group < count) loaded[u] = element(r + u * group);
#pragma unroll
    for (int u = 0; u < kArgInFlight; ++u)
      if (r + u * group < count) x.template take<kMaximum>(r + u * group, loaded[u]);
  }
  return x;
}

CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_arg_reduce(const __grid_constant__ ReduceArgs a) {
  wait_for_previous_kernel();
  const int group = 1 << a.group_shift, lane = threadIdx.x & (group - 1);
  const int64_t output =
      int64_t(blockIdx.x) * (kReduceThreads >> a.group_shift) + (threadIdx.x >> a.group_shift);
  Candidate x = {-1, 0};
  if (output < a.outputs) {
    int64_t offset = 0;
    uint32_t rest = uint32_t(output);
    for (int d = 0; d < a.kept_dims; ++d) {
      uint32_t at;
      rest = divide(rest, a.kept[d], at);
      offset += at * a.kept_stride[d];
    }
    const char* p = static_cast<const char*>(a.input) + offset;
    const int64_t begin = int64_t(blockIdx.y) * a.per_split;
    const int count = split_count(a, begin);
    p += begin * a.reduced_stride[0];
    const Best best = a.maximum ? best_of_range<true>(a, p, count, lane, group)
                                : best_of_range<false>(a, p, count, lane, group);
    x = best.candidate(begin);
  }
  x = best_of_group(x, a.group_shift, a.maximum);
  if (lane == 0 && output < a.outputs) {
    if (a.splits > 1)
      static_cast<Candidate*>(a.partial)[int64_t(blockIdx.y) * a.outputs + output] = x;
    else
      store_position(a, output, x.position);
  }
}

// The rows `first`, first + height, ... of kOutputs adjacent columns.
template <int kOutputs, bool kMaximum>
CATENA_FN void best_of_columns(const ReduceArgs& a, const char* p, int count, int first, int height,
                               Best* best) {
#pragma unroll 1
  for (int r = first; r < count; r += kArgInFlight * height) {
    ArgVector<kOutputs> loaded[kArgInFlight];
#pragma unroll
    for (int u = 0; u < kArgInFlight; ++u)
      if (r + u * height < count) loaded[u].load(p + (r + u * height) * a.reduced_stride[0]);
    if (r == first) {
#pragma unroll
      for (int v = 0; v < kOutputs; ++v) best[v].start(r, loaded[0].value[v]);
    }
#pragma unroll
    for (int u = 0; u < kArgInFlight; ++u) {
      if (r + u * height >= count) break;
#pragma unroll
      for (int v = 0; v < kOutputs; ++v)
        best[v].template take<kMaximum>(r + u * height, loaded[u].value[v]);
    }
  }
}

template <int kOutputs>
CATENA_FN void store_columns(const ReduceArgs& a, int64_t output, char* to,
                             const Candidate* found) {
  if (a.splits > 1) {
    Candidate* partial = static_cast<Candidate*>(a.partial) + blockIdx.y * a.outputs + output;
#pragma unroll
    for (int v = 0; v < kOutputs; ++v) partial[v] = found[v];
    return;
  }
  if constexpr (kOutputs > 1) {
    if (a.result_stride[0] == 8 && reinterpret_cast<uint64_t>(to) % 16 == 0) {
#pragma unroll
      for (int v = 0; v < kOutputs; v += 2) {
        const longlong2 two = {found[v].position, found[v + 1].position};
        *reinterpret_cast<longlong2*>(to + v * 8) = two;
      }
      return;
    }
  }
#pragma unroll
  for (int v = 0; v < kOutputs; ++v)
    *reinterpret_cast<int64_t*>(to + v * a.result_stride[0]) = found[v].position;
}

// A block has 2^group_shift threads along the columns, kOutputs columns each, and the other threads
// along the axis.
template <int kOutputs>
CATENA_FN void arg_columns(const ReduceArgs& a) {
  __shared__ Candidate shared[kReduceThreads];
  const int width = 1 << a.group_shift, lane = threadIdx.x & (width - 1);
  const int height = kReduceThreads >> a.group_shift, first = threadIdx.x >> a.group_shift;
  const int64_t place = int64_t(blockIdx.x) * width + lane;
  const bool inside = place * kOutputs < a.outputs;
  uint32_t column;
  uint32_t outer = divide(uint32_t(place), a.blocks, column);
  int64_t offset = int64_t(column) * kOutputs * int64_t(sizeof(Input)),
          result = int64_t(column) * kOutputs * a.result_stride[0];
  for (int d = 1; d < a.kept_dims; ++d) {
    uint32_t at;
    outer = divide(outer, a.kept[d], at);
    offset += at * a.kept_stride[d];
    result += at * a.result_stride[d];
  }
  Best best[kOutputs];
#pragma unroll
  for (int v = 0; v < kOutputs; ++v) best[v].position = -1;
  const int64_t begin = int64_t(blockIdx.y) * a.per_split;
  if (inside) {
    const char* p = static_cast<const char*>(a.input) + offset + begin * a.reduced_stride[0];
    const int count = split_count(a, begin);
    if (a.maximum)
      best_of_columns<kOutputs, true>(a, p, count, first, height, best);
    else
      best_of_columns<kOutputs, false>(a, p, count, first, height, best);
  }
  Candidate found[kOutputs];
#pragma unroll
  for (int v = 0; v < kOutputs; ++v) {
    found[v] = best[v].candidate(begin);
    if (height == 1) continue;
    shared[threadIdx.x] = found[v];
    __syncthreads();
    if (first == 0) {
      for (int h = 1; h < height; ++h)
        found[v] = better(found[v], shared[h * width + lane], a.maximum);
    }
    __syncthreads();
  }
  if (inside && first == 0)
    store_columns<kOutputs>(a, place * kOutputs, static_cast<char*>(a.output) + result, found);
}

// The innermost kept dimension is contiguous.
CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_arg_reduce_columns(const __grid_constant__ ReduceArgs a) {
  wait_for_previous_kernel();
  if (a.vectors)
    arg_columns<kArgVector>(a);
  else
    arg_columns<1>(a);
}

CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_arg_reduce_finish(const __grid_constant__ ReduceArgs a) {
  wait_for_previous_kernel();
  const int group = 1 << a.group_shift, lane = threadIdx.x & (group - 1);
  const int64_t output =
      int64_t(blockIdx.x) * (kReduceThreads >> a.group_shift) + (threadIdx.x >> a.group_shift);
  Candidate x = {-1, 0};
  if (output < a.outputs) {
    const Candidate* partial = static_cast<const Candidate*>(a.partial) + output;
    for (int s = lane; s < a.splits; s += group) x = better(x, partial[s * a.outputs], a.maximum);
  }
  x = best_of_group(x, a.group_shift, a.maximum);
  if (lane == 0 && output < a.outputs) store_position(a, output, x.position);
}

}  // namespace jit
}  // namespace catena
