// Cross entropy of class scores.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Mean of -log softmax(x)[label] over the labels that are not ignored (normalize), or their sum
// divided by the batch size x.shape[0]. x: (n, classes, d1, ...) floats; t: int32 or int64
// (n, d1, ...). Without valid labels: 0 with zero gradient. 0-d, of x's dtype. A label outside
// [0, classes) is a ValueError on a CPU; on a GPU, where looking would wait for the device, it
// makes the loss NaN, and check_labels says where it is. One kernel forward, one backward.
Variable softmax_cross_entropy(const VariableOperand& x, const VariableOperand& t,
                               YesNo normalize = true, int32_t ignore_label = -1);
// Throws the ValueError above on any device, which it waits for.
void check_labels(const Array& t, int64_t classes, int32_t ignore_label = -1);

}  // namespace catena::functions
