// Losses of variational auto-encoders (D. Kingma and M. Welling, Auto-Encoding Variational Bayes,
// 2014).
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// For all of them: floats of one dtype and shape, else InvalidType. Unless `reduction` says
// otherwise the result is the sum over everything, samples included, and not a mean. It is of the
// operands' dtype; 16-bit operands are computed and added up in float32. Compositions: gradients of
// any order, to every operand.

// The divergence of normal distributions from the standard one,
// (mean^2 + exp(ln_var) - ln_var - 1) / 2.
Variable gaussian_kl_divergence(const VariableOperand& mean, const VariableOperand& ln_var,
                                Reduction reduction = Reduction::kSum);
// -log of the probability of x where sigmoid(y) is that of 1: softplus(y) - x y. x: numbers of
// [0, 1].
Variable bernoulli_nll(const VariableOperand& x, const VariableOperand& y,
                       Reduction reduction = Reduction::kSum);
// -log of the density at x of a normal distribution,
// (ln_var + log(2 pi) + (x - mean)^2 exp(-ln_var)) / 2.
Variable gaussian_nll(const VariableOperand& x, const VariableOperand& mean,
                      const VariableOperand& ln_var, Reduction reduction = Reduction::kSum);

}  // namespace catena::functions
