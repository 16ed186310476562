// Second derivatives of activations, for the gradients of their gradient rows.
#pragma once

#include "catena/autograd/variable.h"

namespace catena::functions {

// x < 0 ? y : 0.
Variable where_negative(const Variable& x, const Variable& y);
// f'' of each.
Variable hard_swish_curvature(const Variable& x);
Variable gelu_curvature(const Variable& x);
Variable gelu_tanh_curvature(const Variable& x);
Variable silu_curvature(const Variable& x);
Variable mish_curvature(const Variable& x);

}  // namespace catena::functions
