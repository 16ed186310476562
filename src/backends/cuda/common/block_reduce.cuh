// Sums over warps and blocks in a fixed order, so that equal launches give equal bits.
#pragma once

#include <stdint.h>

namespace catena::gpu {

constexpr unsigned kAllLanes = 0xffffffffu;

struct AddOp {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};
// NaN wins, as in the reductions.
struct MaxOp {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a >= b || a != a ? a : b;
  }
};

template <class C, class Op>
__device__ C warp_reduce(C value, Op op) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = op(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

// The same over a whole block; its number of full warps is a power of two. Every thread gets the
// result. `shared` holds one C for each warp and may be used again after the call.
template <class C, class Op>
__device__ C block_reduce(C value, Op op, C* shared) {
  value = warp_reduce(value, op);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (warps == 1) return value;
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  value = shared[lane % warps];
  for (int offset = warps / 2; offset > 0; offset /= 2)
    value = op(value, __shfl_xor_sync(kAllLanes, value, offset));
  __syncthreads();
  return value;
}

// The reduction over the threads that share a row: a warp, or the block.
template <bool kWarp, class C, class Op>
__device__ C group_reduce(C value, Op op, C* shared) {
  if constexpr (kWarp)
    return warp_reduce(value, op);
  else
    return block_reduce(value, op, shared);
}

__device__ inline float exp_of(float v) { return expf(v); }
__device__ inline double exp_of(double v) { return exp(v); }
__device__ inline float log_of(float v) { return logf(v); }
__device__ inline double log_of(double v) { return log(v); }

template <class C>
__device__ C lowest();
template <>
__device__ inline float lowest<float>() {
  return -__int_as_float(0x7f800000);
}
template <>
__device__ inline double lowest<double>() {
  return -__longlong_as_double(0x7ff0000000000000ll);
}
template <class C>
__device__ C not_a_number() {
  return lowest<C>() - lowest<C>();
}

// The running maximum of some values and the sum of exp(value - maximum).
template <class C>
struct LogSum {
  C maximum = lowest<C>();
  C sum = C(0);

  __device__ void add(C v) {
    if (v > maximum) {
      sum = sum * exp_of(maximum - v) + C(1);
      maximum = v;
    } else if (v != lowest<C>()) {
      sum += exp_of(v - maximum);
    }
  }
  __device__ void merge(C other_maximum, C other_sum) {
    if (other_maximum > maximum) {
      sum = sum * exp_of(maximum - other_maximum) + other_sum;
      maximum = other_maximum;
    } else if (other_sum != C(0)) {
      sum += other_sum * exp_of(other_maximum - maximum);
    }
  }
};

template <class C>
__device__ LogSum<C> warp_log_sum(LogSum<C> s) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    // Both lanes put the lower lane's pair first, so that both compute the same bits.
    const C maximum = __shfl_xor_sync(kAllLanes, s.maximum, offset);
    const C sum = __shfl_xor_sync(kAllLanes, s.sum, offset);
    if (threadIdx.x & unsigned(offset)) {
      LogSum<C> low{maximum, sum};
      low.merge(s.maximum, s.sum);
      s = low;
    } else {
      s.merge(maximum, sum);
    }
  }
  return s;
}

// `shared` holds two C for each warp.
template <class C>
__device__ LogSum<C> block_log_sum(LogSum<C> s, C* shared) {
  s = warp_log_sum(s);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (warps == 1) return s;
  if (lane == 0) {
    shared[2 * warp] = s.maximum;
    shared[2 * warp + 1] = s.sum;
  }
  __syncthreads();
  LogSum<C> all{shared[0], shared[1]};
  for (int w = 1; w < warps; ++w) all.merge(shared[2 * w], shared[2 * w + 1]);
  __syncthreads();
  return all;
}

}  // namespace catena::gpu
