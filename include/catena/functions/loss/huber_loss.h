// Squared errors near zero, absolute errors far from it.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// With d = x - t: d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2) (Huber 1964); their
// mean, their sum, or themselves. Floats of one dtype and shape, else InvalidType; of their dtype,
// added up in float32 or wider. ValueError unless delta > 0.
Variable huber_loss(const VariableOperand& x, const VariableOperand& t, double delta,
                    Reduction reduction = Reduction::kMean);
// huber_loss / beta: d^2 / (2 beta) where |d| < beta, else |d| - beta / 2 (Girshick 2015). For
// beta = 0 it is mean_absolute_error.
Variable smooth_l1(const VariableOperand& x, const VariableOperand& t, double beta = 1,
                   Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
