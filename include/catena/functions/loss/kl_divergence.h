// Divergence of distributions.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// The divergence of distributions q from p, p log(p / q) summed over axis 1, where p = 0 counts 0
// (Kullback and Leibler 1951): the mean over the samples, the sum, or one number a sample, of the
// shape without axis 1. log_q: (n, classes, ...) logarithms, p: probabilities, floats of one dtype
// and shape, else InvalidType. Of their dtype, computed in float32 or wider.
Variable kl_divergence(const VariableOperand& log_q, const VariableOperand& p,
                       Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
