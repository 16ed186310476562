// Repetition along axes, as views.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x repeated to the shape; x itself when the shapes agree. ShapeError when x does not broadcast to
// it.
Variable broadcast_to(const VariableOperand& x, const Shape& shape);
// All inputs as views of their common shape. InvalidType when there is none.
Variables broadcast(const Variables& xs);

}  // namespace catena::functions
