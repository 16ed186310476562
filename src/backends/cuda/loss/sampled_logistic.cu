// The logistic loss of a few rows of a table for each sample, and its gradients: one kernel each.
#include "backends/cuda/loss/sampled_logistic.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/loss/grid_sum.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ inline float log1p_of(float v) { return log1pf(v); }
__device__ inline double log1p_of(double v) { return log1p(v); }

// A term of a sample. There is none where `row` is not a row.
struct Term {
  int64_t row;
  int sign;
  bool wrong;  // makes the loss NaN
};

// Term k of sample i.
__device__ inline Term term_of(const SampledLogisticArgs& args, int64_t i, int64_t k) {
  if (!args.tree.t) {
    const int64_t row = args.rows[i * args.terms + k];
    return {row, k == 0 ? 1 : -1, row < 0 || row >= args.n};
  }
  const int64_t id = args.tree.t[i];
  if (id < 0 || id >= args.tree.ids) return {-1, 1, true};
  const int64_t begin = args.tree.begins[id], count = args.tree.begins[id + 1] - begin;
  if (k >= count) return {-1, 1, count == 0};
  return {args.tree.paths[begin + k], args.tree.codes[begin + k], false};
}

// A warp for each term. Its lanes share the product.
template <class T>
__global__ void __launch_bounds__(kThreads) sampled_logistic_kernel(SampledLogisticArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const int lane = threadIdx.x % 32;
  double sum = 0;
  for (int64_t w = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; w < args.batch * args.terms;
       w += int64_t(gridDim.x) * kWarps) {
    const int64_t i = w / args.terms, k = w - i * args.terms;
    const Term term = term_of(args, i, k);
    const bool is_row = term.row >= 0 && term.row < args.n;
    C product = 0;
    if (is_row) {
      const T* x = static_cast<const T*>(args.x) + i * args.size;
      const T* row = static_cast<const T*>(args.W) + term.row * args.size;
      for (int64_t d = lane; d < args.size; d += 32) product += widen(x[d]) * widen(row[d]);
      product = warp_reduce(product, AddOp()) * C(term.sign);
    }
    if (lane != 0) continue;
    C coefficient = 0;
    if (is_row) {
      const C size = product < 0 ? -product : product;
      sum += double(product < 0 ? -product : C(0)) + double(log1p_of(exp_of(-size)));
      coefficient = C(-term.sign) * (C(1) / (C(1) + exp_of(product)));
    } else if (term.wrong) {
      sum = not_a_number<double>();
    }
    static_cast<C*>(args.coefficients)[w] = coefficient;
    if (args.tree.t) args.rows[w] = int32_t(term.row);
  }
  grid_sum(sum, args.scratch,
           [&](double total) { *static_cast<T*>(args.loss) = Narrow<T>::from(C(total)); });
}

// A thread for each element of x, which goes through the terms of its sample.
template <class T>
__global__ void __launch_bounds__(kThreads) sampled_logistic_grad_kernel(SampledLogisticArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const C gloss = widen(*static_cast<const T*>(args.gloss));
  const int64_t total = args.batch * args.size;
  for (int64_t e = int64_t(blockIdx.x) * kThreads + threadIdx.x; e < total;
       e += int64_t(gridDim.x) * kThreads) {
    const int64_t i = e / args.size, d = e - i * args.size;
    const C x = widen(static_cast<const T*>(args.x)[e]);
    C sum = 0;
    for (int64_t k = 0; k < args.terms; ++k) {
      const int64_t at = i * args.terms + k, row = args.rows[at];
      const bool is_row = row >= 0 && row < args.n;
      const C factor = static_cast<const C*>(args.coefficients)[at] * gloss;
      if (args.gx && is_row)
        sum += factor * widen(static_cast<const T*>(args.W)[row * args.size + d]);
      if (args.values)
        static_cast<T*>(args.values)[at * args.size + d] =
            Narrow<T>::from(is_row ? factor * x : C(0));
    }
    if (args.gx) static_cast<T*>(args.gx)[e] = Narrow<T>::from(sum);
  }
}

}  // namespace

int sampled_logistic_blocks(const SampledLogisticArgs& args, const Launch& launch) {
  return int(loop_blocks(args.batch * args.terms, kWarps, launch, 8));
}

void launch_sampled_logistic(Float type, const SampledLogisticArgs& args, int blocks,
                             const Launch& launch) {
  CATENA_FLOAT_SWITCH(
      type, (launch_kernel<sampled_logistic_kernel<T>>(unsigned(blocks), kThreads, launch, args)))
}

void launch_sampled_logistic_grad(Float type, const SampledLogisticArgs& args,
                                  const Launch& launch) {
  const unsigned blocks = loop_blocks(args.batch * args.size, kThreads, launch);
  CATENA_FLOAT_SWITCH(
      type, (launch_kernel<sampled_logistic_grad_kernel<T>>(blocks, kThreads, launch, args)))
}

}  // namespace catena::gpu
