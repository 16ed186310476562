// Labels as vectors.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// 1 at the number of each label, else 0: (labels..., classes). t: integers of any shape; one
// outside [0, classes), such as a label to be ignored, gives zeros. Of the dtype, a constant.
// InvalidType for labels that are not integers, ValueError for a negative number of classes.
Variable one_hot(const VariableOperand& t, int64_t classes, Dtype dtype = Dtype::kFloat32);

}  // namespace catena::functions
