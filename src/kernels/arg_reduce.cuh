// Positions of extreme elements along one axis. NVRTC only; the text before this file gives Input.
// NaN counts as extreme; of equal elements the first counts, so the order of combining is free.
#pragma once

#include "kernels/args.h"
#include "kernels/prelude.cuh"
#include "kernels/shuffle.cuh"

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

// The best of 2^shift neighbouring threads, in the first of them. All threads of the block take
// part.
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

CATENA_FN void store_position(const ArgReduceArgs& a, int64_t output, int64_t position) {
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
union ArgVector {
  uint4 raw;
  Input value[kArgVector];
};

// The best of what one thread sees in ascending order: a later element must be better than the best
// so far, and nothing is better than NaN. `x` holds the first element, or none.
template <bool kMaximum>
CATENA_FN void take_next(Candidate& x, int64_t position, typename Compute<Input>::type value) {
  const bool worse = kMaximum ? value <= x.value : value >= x.value;
  if (x.position < 0 || (!worse && x.value == x.value)) {
    x.value = value;
    x.position = position;
  }
}

// One thread's share of the elements begin to end behind an output.
template <bool kMaximum>
CATENA_FN Candidate best_of_range(const ArgReduceArgs& a, const char* p, int64_t begin, int64_t end,
                                  int lane, int group) {
  Candidate x = {-1, 0};
  int64_t r = begin + lane;
  if (a.vectors) {
    const int64_t vectors = (end - begin) / kArgVector;
    const uint4* words = reinterpret_cast<const uint4*>(p + begin * int64_t(sizeof(Input)));
#pragma unroll 1
    for (int64_t i = lane; i < vectors; i += kArgInFlight * group) {
      ArgVector loaded[kArgInFlight];
#pragma unroll
      for (int u = 0; u < kArgInFlight; ++u)
        if (i + u * group < vectors) loaded[u].raw = words[i + u * group];
#pragma unroll
      for (int u = 0; u < kArgInFlight; ++u) {
        if (i + u * group >= vectors) break;
        const int64_t first = begin + (i + u * group) * kArgVector;
#pragma unroll
        for (int v = 0; v < kArgVector; ++v)
          take_next<kMaximum>(x, first + v, widen(loaded[u].value[v]));
      }
    }
    r = begin + vectors * kArgVector + lane;
  }
#pragma unroll 1
  for (; r + (kArgInFlight - 1) * group < end; r += kArgInFlight * group) {
    Input loaded[kArgInFlight];
#pragma unroll
    for (int u = 0; u < kArgInFlight; ++u)
      loaded[u] = *reinterpret_cast<const Input*>(p + (r + u * group) * a.stride);
#pragma unroll
    for (int u = 0; u < kArgInFlight; ++u) take_next<kMaximum>(x, r + u * group, widen(loaded[u]));
  }
#pragma unroll 1
  for (; r < end; r += group)
    take_next<kMaximum>(x, r, widen(*reinterpret_cast<const Input*>(p + r * a.stride)));
  return x;
}

CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_arg_reduce(const __grid_constant__ ArgReduceArgs a) {
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
    const int64_t end = begin + a.per_split < a.reduced ? begin + a.per_split : a.reduced;
    x = a.maximum ? best_of_range<true>(a, p, begin, end, lane, group)
                  : best_of_range<false>(a, p, begin, end, lane, group);
  }
  x = best_of_group(x, a.group_shift, a.maximum);
  if (lane == 0 && output < a.outputs) {
    if (a.splits > 1)
      static_cast<Candidate*>(a.partial)[int64_t(blockIdx.y) * a.outputs + output] = x;
    else
      store_position(a, output, x.position);
  }
}

CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_arg_reduce_finish(const __grid_constant__ ArgReduceArgs a) {
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
