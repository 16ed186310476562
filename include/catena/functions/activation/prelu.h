// Rectifiers whose slope is learned: prelu and the layer PReLU.
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Element by element x where x >= 0, else W * x (K. He et al., Delving Deep into Rectifiers, 2015).
// x: (n, ...) of a floating dtype; W, of the same dtype, covers the axes of x behind the first one
// that it has: of shape () it is one number, of shape (channels) one number a channel. InvalidType
// when they do not fit. W's gradient is the sum of x * gy where x < 0, over the other axes.
Variable prelu(const VariableOperand& x, const VariableOperand& W);

// prelu as a layer on the current device, all elements of W starting with `init`. DtypeError for
// integer dtypes, ValueError for a negative extent.
class PReLU : public Parameterized {
 public:
  explicit PReLU(const Shape& shape = {}, double init = 0.25, Dtype dtype = Dtype::kFloat32);
  // Errors are those of prelu().
  Variable operator()(const VariableOperand& x) const;

  OwnedParameter W;  // the slopes
  CATENA_PARAMETERS(W)
};

}  // namespace catena::functions
