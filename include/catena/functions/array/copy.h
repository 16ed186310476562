// Copies between devices.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// On another device, for model-parallel networks: both directions are asynchronous copies ordered
// as Array::to; the gradient comes back to where x lives. Across CPUs, GPUs, and between them.
Variable copy(const VariableOperand& x, Device device);

}  // namespace catena::functions
