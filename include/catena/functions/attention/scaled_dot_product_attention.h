// Scaled dot-product attention, and which keys a query attends to.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Which keys a query attends to, and how scores are made. What is given holds at once.
//
// Query i is at position p = i + keys - queries on the axis of the keys, so that the last query is
// at the last key; with query_start at p = i + query_start[b]. (PyTorch's is_causal puts the first
// query at the first key, which differs where there are fewer queries than keys.)
//
// Arrays are on the device of q and broadcast as in NumPy. Integers are of int32 or int64. On the
// CPU lengths and offsets outside of their range are a ValueError. On a GPU nobody looks: they
// count as the nearest ones within it; check_attention_lengths and check_attention_documents say
// where they are. Keys behind key_lengths are not read. Those that other rules exclude are, and
// must be finite.
struct AttentionOptions {
  bool causal = false;  // keys j <= p
  // bool: true where a query may attend to a key. Floats are added to the scores, as constants.
  std::optional<Array> mask = {};
  // Floats of q's dtype, or of float32 beside 16 bits, added to the scores; has a gradient.
  OptionalVariable bias = {};
  std::optional<double> scale = {};       // of q k^T; 1 / sqrt(depth) unless given
  double dropout = 0;                     // of the weights of keys; while training only
  std::optional<int64_t> window = {};     // keys with |p - j| < window
  std::optional<double> softcap = {};     // scores are softcap * tanh(scores / softcap) before bias
  std::optional<Array> key_lengths = {};  // (batch): keys j < key_lengths[b], others are padding
  std::optional<Array> query_start = {};  // (batch)
  // Offsets [0, o1, ..., queries] of documents side by side in one batch entry: queries attend to
  // keys of their own document, in which positions are counted. Those of the keys are the same
  // unless given.
  std::optional<Array> documents = {}, key_documents = {};
};

// softmax(scale * q k^T + ...) v (Vaswani et al. 2017), without scores in memory, but on GPUs for
// float64, heads of more than 256 columns, gradients of a bias and GPUs before 8.0. q (batch,
// heads, queries, depth), k (batch, groups, keys, depth), v (batch, groups, keys, width), of one
// floating dtype and on one device, with any strides: slices of a projection and views with heads
// behind positions are not copied. heads is a multiple of groups, and consecutive heads / groups of
// them attend to the keys of one group (Ainslie et al. 2023). Result (batch, heads, queries,
// width), with the axes in the order in memory that q has. 16-bit floats are computed in float32;
// on GPUs weights and gradients of scores are rounded to 16 bits before the second products.
//
// A query that may attend to no key gets 0, and gives gradients of 0. Gradients of any order; those
// of higher order have scores in memory. Equal calls give equal bits, on GPUs with cuDNN under
// config().deterministic alone.
//
// InvalidType where q, k and v do not fit; ShapeError and DtypeError for other arrays; ValueError
// for a window below 1, a softcap outside (0, 1e30], a dropout outside [0, 1), a scale that is not
// finite, and documents in more than one batch entry.
Variable scaled_dot_product_attention(const VariableOperand& q, const VariableOperand& k,
                                      const VariableOperand& v,
                                      const AttentionOptions& options = {});

// y, and the logarithm of the sum of exp(score) over the keys of each query: (batch, heads,
// queries), float32 (float64 for float64), -inf where there are no keys. Both have gradients.
// Results for parts of the keys make that for all: with M = logaddexp(l1, l2) it is
// exp(l1 - M) y1 + exp(l2 - M) y2. A query without keys in both has no such sum: it gives NaN.
struct AttentionResult {
  Variable y, log_sum_exp;
};
// The same call with both results.
AttentionResult attention_with_statistics(const VariableOperand& q, const VariableOperand& k,
                                          const VariableOperand& v,
                                          const AttentionOptions& options = {});

// ValueError that names the first length outside of [0, keys]; ShapeError and DtypeError for what
// is not a vector of integers. Waits for the device.
void check_attention_lengths(const Array& key_lengths, int64_t keys);
// ValueError that names the first offset that is wrong: documents begin at 0, do not fall, and end
// with the axis; ShapeError and DtypeError as above. Waits for the device.
void check_attention_documents(const Array& documents, int64_t extent);

}  // namespace catena::functions
