// The gradient of a score. Two kernels make the scores again (Dao 2023): one has a tile of queries
// and passes over keys, one has a tile of keys and passes over queries. Nothing is added up in
// memory, so that equal calls give equal bits: seven products instead of the five of one kernel
// whose blocks add to the gradient of the queries.
#pragma once

#include "backends/cuda/attention/scores.cuh"
#include "backends/cuda/common/dynamic_shared.cuh"

namespace catena::gpu {
namespace {

template <bool kPlain>
__device__ RowNorms norms_of(const AttentionGradArgs& args, int batch, int head, int query) {
  const AttentionArgs& forward = args.forward;
  RowNorms norms{0, kInfinity, 0};
  if (query >= forward.queries) return norms;
  const int64_t rows = int64_t(forward.batch) * forward.heads * forward.queries;
  const int64_t row = (int64_t(batch) * forward.heads + head) * forward.queries + query;
  const float largest = forward.norms[row];
  if (largest == -kInfinity) return norms;
  const float rest = forward.norms[rows + row];
  if (kPlain) return {0, (largest + rest) * kLog2E, args.row[row] * forward.scale};
  return {largest, rest * kLog2E, args.row[row] * forward.scale};
}

// From a product of q and k and one of gout and v: the weight as the product with v takes it, and
// the gradient of the product of q and k: scaled before 16 bits hold it. A weight is at most 1:
// products of another order may exceed the largest score by a rounding.
struct WeightAndGradient {
  float weight, gradient;
};

// Where the largest score and the rest are one number, scores beyond 2^20 have few digits of a
// weight: those of 16-bit operands are not that large in networks.
__device__ inline WeightAndGradient differentiate_plain(float scale, float exponent,
                                                        const RowNorms& norms, float product,
                                                        float gweight) {
  const float weight = exp2_of(at_most_zero(fmaf(product, exponent, -norms.rest)));
  return {weight, weight * fmaf(gweight, scale, -norms.subtracted)};
}

template <class T>
__device__ WeightAndGradient differentiate(const AttentionArgs& args, const ScoreRules<T>& rules,
                                           const RowNorms& norms, float product, float gweight,
                                           int query, int key) {
  float slope, factor = 1;
  const float score = rules.score(product * args.scale, query, key, &slope);
  const float weight = exp2_of(at_most_zero(fmaf(score - norms.largest, kLog2E, -norms.rest)));
  if (weight == 0) return {0, 0};
  if (args.dropout > 0) {
    factor = rules.factor(query, key);
    gweight *= factor;
  }
  return {weight * factor, weight * fmaf(gweight, args.scale, -norms.subtracted) * slope};
}

}  // namespace
}  // namespace catena::gpu
