// Scaled dot-product attention (Vaswani et al. 2017) without scores in memory, and its gradient.
#pragma once

#include <cstdint>

#include "catena/kernels/random.h"
#include "catena/kernels/slot.h"

namespace catena {

class Array;

// Which keys a query may attend to. All rules that are given hold at once. Query i of batch entry b
// is at position p = i + start on the axis of the keys, where start is query_start[b], else
// keys - queries, so that the last query is at the last key.
struct AttentionRules {
  bool causal = false;                 // keys j <= p
  int64_t window = 0;                  // keys with |p - j| < window; 0: all
  const Array* key_lengths = nullptr;  // int32 (batch): keys j < key_lengths[b]
  const Array* query_start = nullptr;  // int32 (batch)
  // Offsets 0 = o[0] <= ... <= o[n] of n documents in the only batch entry, int32 (n + 1), both or
  // none. A query attends to keys of its own document, in which p is counted; one behind o[n] to
  // none. Not with query_start. Offsets that fall, or are outside of the axis, count as the nearest
  // ones that are not.
  const Array* query_documents = nullptr;
  const Array* key_documents = nullptr;
};

// out = P v, where row i of P is the softmax of score(i, j) over the keys that i may attend to, and
// 0 elsewhere; a query that may attend to none gets 0.
//   score = softcap * tanh(scale * q k^T / softcap) + bias, without a softcap scale * q k^T + bias
// q (batch, heads, queries, depth), k (batch, groups, keys, depth), v (batch, groups, keys, width):
// one floating dtype, any strides; heads is a multiple of groups, and head h attends with group
// h / (heads / groups). No extent but keys is 0. mask: bool, true where a query may attend; bias:
// of q's dtype or its compute type (float32; float64 for float64), -inf forbids a key. Both are
// (batch, heads, queries, keys), with stride 0 along axes that are broadcast. rules' arrays, like
// the mask, are read when the device gets there. Rows of k and v behind key_lengths are not read.
// dropout of [0, 1): element e of P, counted in C order over (batch, heads, queries, keys), is kept
// and divided by 1 - dropout where the DropoutCall of these bits keeps element e. out (batch,
// heads, queries, width): q's dtype, any strides without overlap. norms: contiguous (2, batch,
// heads, queries) of compute type, two numbers whose sum is the logarithm of the sum of exp(score):
// the largest score of the keys of a query and the rest, as one number would lose digits where
// scores are large; for 16-bit q also the whole logarithm and 0. -inf and 0 where there are no
// keys. Computes in the compute type, but P and the gradients of q k^T may be rounded to 16 bits
// for the products with v, q and k.
struct AttentionCall {
  const Array* q;
  const Array* k;
  const Array* v;
  const Array* mask = nullptr;
  const Array* bias = nullptr;
  AttentionRules rules = {};
  double scale = 1;
  double softcap = 0;  // 0: none
  double dropout = 0;
  RandomBits bits = {};
  const Array* out;
  const Array* norms;
};

// The gradients of q, k, v and bias from gout, of out, and glog_sum, of the sum of both norms
// (compute type, contiguous; null: 0). forward: the call as it was made, with its results. gq, gk,
// gv: like q, k and v, with any strides without overlap. gbias: null, or contiguous of compute
// type, each extent that of the scores, or 1 where the gradient is summed over the axis.
struct AttentionGradCall {
  const AttentionCall& forward;
  const Array* gout;
  const Array* glog_sum = nullptr;
  const Array* gq;
  const Array* gk;
  const Array* gv;
  const Array* gbias = nullptr;
};

namespace kernels {

// The slots of the calls above.
extern Slot<AttentionCall> attention;
extern Slot<AttentionGradCall> attention_grad;

}  // namespace kernels

}  // namespace catena
