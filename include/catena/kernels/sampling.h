// Draws from a discrete distribution, and the loss of a few rows of a table that were drawn or are
// the path of a tree.
#pragma once

#include "catena/kernels/random.h"
#include "catena/kernels/slot.h"

namespace catena {

// Walker's alias method. threshold: float32 (n), values: int32 (2n), both contiguous, n of
// [1, 2^31); output: int32, contiguous, not empty. Element i has the 64 bits of half i % 2 of block
// offset + i / 2 (see RandomCall). Of bits * n the high 64 bits are a slot s, the low ones the
// fraction u of [0, 1), in 53 bits: output[i] = values[2s + (u < threshold[s] ? 0 : 1)].
struct AliasSampleCall {
  const RandomBits& bits;
  const Array& threshold;
  const Array& values;
  const Array& output;
};

// The terms of a tree's leaves: leaf `id` has rows paths[k] and signs codes[k], 1 or -1, for k from
// begins[id] to begins[id + 1] - 1; an id without any is not a leaf. t: int32 (batch), the leaf of
// each sample; begins: int32 (ids + 1); paths: int32; codes: int8; all contiguous.
struct TreePaths {
  const Array* t;
  const Array* begins;
  const Array* paths;
  const Array* codes;
};

// loss = sum over samples i and terms k of log(1 + exp(-sign * (x[i] . W[rows[i, k]]))).
//
// x: (batch, size), W: (n, size), both contiguous floats of one dtype; rows: int32 (batch, terms),
// contiguous, not empty. Without `paths` rows are given, and the sign is 1 in column 0, else -1; a
// row outside [0, n) makes the loss NaN. With `paths` rows are written: those of each leaf, of
// which there are at most `terms`, then -1; an id outside the tree, or of no leaf, makes the loss
// NaN, and its rows are -1. coefficients: (batch, terms) of compute type (float32; float64 for
// float64), the derivative of each term by its product, -sign / (1 + exp(sign * product)), whose
// sign bit is right where it is 0 too; 0 where there is no row. Products and sums are of compute
// type, the sum over samples of double. loss: 0-d of x's dtype. Equal calls give equal bits.
struct SampledLogisticCall {
  const Array* x;
  const Array* W;
  const Array* rows;
  const Array* coefficients;
  const Array* loss;
  const TreePaths* paths = nullptr;
};

// gx[i] = gloss * sum over k of coefficients[i, k] * W[rows[i, k]], and gW[r] (+)= gloss * sum over
// rows[i, k] = r of coefficients[i, k] * x[i], both over rows of [0, n). With accumulate_W gW is
// added to, else rows without a term are 0. gloss: 0-d of x's dtype. gx: like x, gW: like W,
// contiguous; each may be null. On a CPU, and under config().deterministic, equal calls give equal
// bits.
struct SampledLogisticGradCall {
  const Array* x;
  const Array* W;
  const Array* rows;
  const Array* coefficients;
  const Array* gloss;
  const Array* gx;
  const Array* gW;
  bool accumulate_W = false;
};

namespace kernels {

// The slots of the calls above.
extern Slot<AliasSampleCall> alias_sample;
extern Slot<SampledLogisticCall> sampled_logistic;
extern Slot<SampledLogisticGradCall> sampled_logistic_grad;

}  // namespace kernels

}  // namespace catena
