// Connectionist temporal classification (Graves et al. 2006).
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// The loss of sample i is -log P, P the sum of the probabilities of all paths: sequences of a class
// for each of its steps that become its labels when equal neighbours are joined and blanks are then
// left out. Probabilities are the softmax of the scores.
//
// x: scores, contiguous floats (steps, batch, classes); t: int32 (batch, labels). input_lengths and
// label_lengths: int32 (batch), the steps and the labels that belong to a sample; null: all. All
// are contiguous; no extent but labels is 0. A sample with a length that is negative or too large,
// or a label among its own that is not a class or is the blank, has the loss NaN, one whose labels
// no path gives has the loss infinity. The following are of compute type (float32; float64 for
// float64). norms: (2, steps, batch), of each step the largest score, and the logarithm of the sum
// of exp(score - largest). alpha: (batch, steps, 2 labels + 1), logarithms of the probability of
// the beginnings of paths up to a step that end at a position of blank, t[0], blank, t[1], ...,
// blank, and of the scores up to there; steps and positions that do not belong to a sample are not
// written. losses: (batch). loss, of x's dtype: factor * sum of the losses if it is 0-d, else
// the losses, (batch). Equal calls give equal bits.
struct CtcCall {
  const Array* x;
  const Array* t;
  const Array* input_lengths;
  const Array* label_lengths;
  int32_t blank;
  double factor;
  const Array* norms;
  const Array* alpha;
  const Array* losses;
  const Array* loss;
};

// gx[k, i] = (softmax(x[k, i]) - posterior) * gloss * factor, where the posterior of a class is the
// probability that the path of the sample is there at step k; 0 for steps that do not belong to the
// sample, and for samples whose loss is infinite or whose lengths or labels make it NaN. gloss:
// like the loss; factor counts for a 0-d one only. gx: contiguous, of x's dtype and shape.
struct CtcGradCall {
  const CtcCall& forward;
  const Array& gloss;
  const Array& gx;
};

namespace kernels {

// The slots of the calls above.
extern Slot<CtcCall> ctc;
extern Slot<CtcGradCall> ctc_grad;

}  // namespace kernels

}  // namespace catena
