// Rectifiers whose slope is learned: prelu and the layer PReLU.
#pragma once

#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Element by element x where x >= 0, else W * x (K. He et al., Delving Deep into Rectifiers, 2015).
// x: (n, ...) of a floating dtype; W, of the same dtype, covers the axes of x behind the first one
// that it has: of shape () it is one number, of shape (channels) one number a channel. InvalidType
// when they do not fit. The gradient of x is gy where x >= 0, else W * gy; that of W is the sum of
// x * gy where x < 0, over the other axes. Differentiable any number of times.
Variable prelu(const VariableOperand& x, const VariableOperand& W);

// Start value and dtype of a PReLU.
struct PReLUOptions {
  InitialValue init = {};           // of W; 0.25 unless given
  std::optional<Dtype> dtype = {};  // float32, or that of an array init
};

// prelu as a layer on the current device, with a W of this shape: F::PReLU({16}, {.init = 0.1}).
// An array init is copied. DtypeError for integer dtypes, ValueError for a negative extent,
// ShapeError for an init of another shape.
class PReLU : public Parameterized {
 public:
  explicit PReLU(const Shape& shape = {}, const PReLUOptions& options = {});
  // Errors are those of prelu().
  Variable operator()(const VariableOperand& x) const;

  OwnedParameter W;  // the slopes
  CATENA_PARAMETERS(W)
};

}  // namespace catena::functions
