// Joining along a new axis, and along the axes that images and tables have.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Inputs of one shape and dtype along a new axis of the result; else InvalidType. ValueError for no
// input, IndexError for an axis out of range. One kernel; the gradients are views.
Variable stack(const Variables& xs, Axis axis = 0);
// Along axis 1, of 1-d inputs along axis 0. A number counts as one element.
Variable hstack(const Variables& xs);
// Along axis 0; 1-d inputs, and numbers, are rows.
Variable vstack(const Variables& xs);
// Along axis 2: matrices become (m, n, 1), and 1-d inputs and numbers (1, n, 1).
Variable dstack(const Variables& xs);

}  // namespace catena::functions
