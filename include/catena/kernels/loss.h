// Losses and measures of classification.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// x: contiguous (outer, classes, inner) floats. t: int32 contiguous (outer, inner); labels equal to
// ignore are skipped, others outside [0, classes) make the loss NaN and are reported by
// label_check. lse: two numbers a sample, (2, outer, inner), of compute type (float32; float64 for
// float64): the largest score, and the logarithm of the sum of exp(x - largest). Their sum,
// rounded, would lose the digits of the loss where scores are large. count: 0-d of that type, the
// divisor: number of labels not ignored if normalize, else outer, and at least 1. loss: 0-d of x's
// dtype or of compute type. counted: as count, the number of labels not ignored; null: nobody asks.
struct CrossEntropyCall {
  const Array* x;
  const Array* t;
  int32_t ignore_label;
  bool normalize;
  const Array* lse;
  const Array* count;
  const Array* loss;
  const Array* counted = nullptr;
};

// gx = (softmax(x) - onehot(t)) * gloss / count, 0 for ignored labels; gloss 0-d, of the dtype of
// gx or of compute type. The sums of lse may be those of more classes than x has, and gx may be x.
//
// With factors, (1, outer, inner), contiguous and of compute type, those of the samples count
// instead of gloss and count, which are not used: gx = (softmax(x) - onehot(t)) * factors[0]. With
// spread as well, (classes), contiguous and of compute type, factors is (3, outer, inner):
// gx = softmax(x) * factors[0] - onehot(t) * factors[1] - spread * factors[2].
struct CrossEntropyGradCall {
  const CrossEntropyCall& forward;
  const Array& gloss;
  const Array& gx;
  const Array* factors = nullptr;
  const Array* spread = nullptr;
};

// x: contiguous (outer, classes, inner) floats, which the gradient replaces. t and ignore_label: as
// in CrossEntropyCall. All numbers but x, loss and gloss are of compute type. With w = weights[s]
// (1 without weights) and spread and total, its sum (0 without), the sample s of label t has
//
//   losses[s] = w (-log p[t]) + sum(spread[c] (-log p[c])) + z_loss lse^2
//   x[c]      = (p[c] (w + total + 2 z_loss lse) - onehot(t)[c] w - spread[c]) factors[s] gloss
//               / divisor
//
// where lse is the logarithm of the sum of exp(x), and factors, the gradients of the losses, are 1
// if they are null. Both are 0 for ignored labels; the loss of a label out of range is NaN. loss is
// the sum of losses divided by divisor. With losses_only nobody wants the gradient, and what x
// holds afterwards is undefined. Where labels is given there are so many classes: the columns of x
// and spread behind them, which fill rows up, hold -inf and 0, and are no label.
struct CrossEntropyInPlaceCall {
  const Array& x;
  const Array& t;
  int32_t ignore_label;
  const Array& losses;   // (outer, inner)
  const Array* loss;     // 0-d of x's dtype, or null
  const Array* divisor;  // 0-d, or null for 1
  // Whether the call itself sets divisor first: as count in CrossEntropyCall, by normalize; and
  // counted, unless it is null.
  bool counts, normalize;
  const Array* gloss = nullptr;                     // 0-d of x's dtype, or null for 1
  const Array* weights = nullptr;                   // (outer, inner)
  const Array *spread = nullptr, *total = nullptr;  // (classes), 0-d; both or none
  const Array* counted = nullptr;
  const Array* factors = nullptr;  // (outer, inner)
  double z_loss = 0;
  bool losses_only = false;
  int64_t labels = 0;  // 0: as many as columns
};

// x *= factors / expected, x a contiguous (outer, classes, inner) of floats; nothing is written
// where the two are equal. factors: 0-d, or (outer, inner), a number for each sample. expected:
// 0-d, or null for 1. All of one dtype.
struct ScaleSamplesCall {
  const Array& x;
  const Array& factors;
  const Array* expected;
};

// result: share of samples whose arg max over classes equals t among those not ignored; 0-d float32
// (float64 for float64 x). A sample with a NaN among its scores is wrong whatever its label. x and
// t as in CrossEntropyCall.
struct AccuracyCall {
  const Array& x;
  const Array& t;
  bool has_ignore;
  int32_t ignore_label;
  const Array& result;
};

namespace kernels {

// The slots of the calls above.
extern Slot<CrossEntropyCall> softmax_cross_entropy;
extern Slot<CrossEntropyGradCall> softmax_cross_entropy_grad;
extern Slot<CrossEntropyInPlaceCall> softmax_cross_entropy_in_place;
extern Slot<ScaleSamplesCall> scale_samples;
extern Slot<AccuracyCall> accuracy;

}  // namespace kernels

}  // namespace catena
