// Hinge loss of class scores.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// What becomes of the parts of a hinge loss: themselves, or their squares.
enum class HingeNorm : uint8_t { kL1, kL2 };
// max(0, 1 - x) of the score of the label, max(0, 1 + x) of the others, or their squares
// (Crammer and Singer 2001, one against the rest): the sum over classes, averaged over the samples;
// the sum; or all parts, (n, classes). x: (n, classes) floats; t: integers (n), numbers of classes;
// for a label outside [0, classes) all scores are others. InvalidType when they do not fit.
Variable hinge(const VariableOperand& x, const VariableOperand& t, HingeNorm norm = HingeNorm::kL1,
               Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
