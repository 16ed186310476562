// The gradient through an activation behind a linear layer, and that of the layer's bias.
#pragma once

#include "catena/array/array.h"
#include "catena/autograd/function_node.h"
#include "catena/kernels/linear.h"

namespace catena::functions {

// gx = gy f'(x) in one kernel, which also gives the bias, the operand at `bias` (below 0: none),
// its gradient where that is wanted. Arrays as in LinearActivationGradCall, but any of them may be
// empty. Not under create_graph.
void give_activation_grad(BackwardContext& context, LinearActivation function, const Array& gy,
                          const Array& kept, const Array& gx, int bias);

}  // namespace catena::functions
