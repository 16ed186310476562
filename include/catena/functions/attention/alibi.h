// Attention with linear biases instead of positions.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/array/array.h"

namespace catena::functions {

// Options of alibi_bias.
struct AlibiOptions {
  // For causal attention one row serves all queries: a softmax does not change where all scores of
  // a query move by the same number. The bias is then (heads, 1, keys).
  bool causal = false;
  Dtype dtype = Dtype::kFloat32;
  Device device = current_device();
};

// The bias of scaled_dot_product_attention that makes the scores of a key fall with its distance
// (O. Press, N. Smith and M. Lewis, Train Short, Test Long, ICLR 2022): -slope * |p - j| of key j
// and the query at position p = i + keys - queries, as (heads, queries, keys); with `causal`
// slope * (j - keys + 1), as (heads, 1, keys). ValueError for extents below 1 and for dtypes that
// are not floating.
Array alibi_bias(int64_t heads, int64_t queries, int64_t keys, const AlibiOptions& options = {});

// The slopes of the heads: 2^(-8 (h + 1) / n) for n = heads if that is a power of two. Else those
// of the largest power of two below, then every second one of twice as many heads.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace catena::functions
