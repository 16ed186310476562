// The logistic loss of a few rows of W for each sample, which negative_sampling and
// BinaryHierarchicalSoftmax share.
#pragma once

#include "catena/autograd/function_call.h"
#include "catena/kernels/sampling.h"

namespace catena::functions {

// Of a call with the operands x (batch, size), labels or samples, and W (n, size). `rows`: int32
// (batch, terms) as SampledLogisticCall has them. `watched`: rows are the array of operand 1
// itself. A 0-d sum of x's dtype.
Variable apply_sampled_logistic(FunctionCall& call, const Array& rows, const TreePaths* paths,
                                bool watched);

}  // namespace catena::functions
