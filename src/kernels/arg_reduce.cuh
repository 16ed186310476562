// Positions of extreme elements along one axis. NVRTC only; the text before this file gives Input.
// NaN counts as extreme; of equal elements the first counts, so the order of combining is free.
#pragma once

#include "kernels/args.h"
#include "kernels/prelude.cuh"

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

CATENA_FN Candidate best_of_group(Candidate x, int shift, bool maximum) {
  __shared__ Candidate shared[kReduceThreads];
  shared[threadIdx.x] = x;
  const int group = 1 << shift;
  for (int distance = group / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if ((int(threadIdx.x) & (group - 1)) < distance) {
      x = better(x, shared[threadIdx.x + distance], maximum);
      shared[threadIdx.x] = x;
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
#pragma unroll 4
    for (int64_t r = begin + lane; r < end; r += group) {
      const Candidate y = {r, widen(*reinterpret_cast<const Input*>(p + r * a.stride))};
      x = better(x, y, a.maximum);
    }
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
