// Joining along a new axis, and along the axes that images and tables have.
#pragma once

#include <vector>

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
// Vectors as columns beside the columns of matrices; ShapeError for inputs of other numbers of
// axes.
Variable column_stack(const Variables& xs);
// Rows of blocks side by side, the rows one below the other: the last axis joins the blocks of a
// row, the second last the rows. Blocks with fewer axes get ones before their own. ValueError for
// no row and for a row without blocks, InvalidType for blocks that do not fit together. One kernel
// for each row of several blocks, one for the rows.
Variable block(const std::vector<Variables>& rows);

}  // namespace catena::functions
