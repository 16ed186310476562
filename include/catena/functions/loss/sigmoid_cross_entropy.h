// Cross entropy of independent yes-or-no scores.
#pragma once

#include <optional>

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// sum(softplus(x) - x t) over elements with t != ignore_label, divided by the batch size
// x.shape[0], or (normalize) by the number of those elements. x: floats; t: integers 0 and 1 of the
// same shape (others count as 1). 0-d, of x's dtype, added up in float32 or wider. InvalidType when
// they do not fit.
//
// t may also be floats, probabilities of x's dtype and shape, which get a gradient; no element is
// ignored then. An infinite loss of probability or weight 0 counts 0.
Variable sigmoid_cross_entropy(const VariableOperand& x, const VariableOperand& t,
                               bool normalize = false, int32_t ignore_label = -1);

// Options of sigmoid_cross_entropy.
struct SigmoidCrossEntropyOptions {
  // Whether a mean divides by the number of elements whose label is not ignore_label, and not by
  // the batch size.
  bool normalize = false;
  int32_t ignore_label = -1;
  // kNone: a loss for each element, 0 for ignored ones.
  Reduction reduction = Reduction::kMean;
  // Factor of the loss where t is 1, a constant: one number, or floats that broadcast to x.
  std::optional<Array> pos_weight = {};
};
// The same with options: t pos_weight softplus(-x) + (1 - t) softplus(x) of each element.
Variable sigmoid_cross_entropy(const VariableOperand& x, const VariableOperand& t,
                               const SigmoidCrossEntropyOptions& options);

}  // namespace catena::functions
