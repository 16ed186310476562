// Positive and negative parts side by side.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// relu(x) and relu(-x), concatenated along an axis, which becomes twice as long (W. Shang et al.,
// Understanding and Improving Convolutional Neural Networks via Concatenated Rectified Linear
// Units, 2016). x: floats, else InvalidType. IndexError for an axis out of range.
Variable crelu(const VariableOperand& x, Axis axis = 1);

}  // namespace catena::functions
