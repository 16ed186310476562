// Mean of a sum over what counts in it.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// sum / counted, or 0 without gradients where counted is 0, for losses that divide by something
// else than the samples: tokens, elements under a mask, weights. It declares what it divided by
// (mean.h): a batch that is divided over ranks, accumulated passes or micro-batches trains as one
// pass over all of it would.
//
//   loss = F::mean_over(F::sum(losses * mask), mask.sum());
//
// sum: one element, floats; counted: one element of any dtype, at least 0, a constant, on the
// device of sum. `expected`: what counted is if everything counts; 0: not known. ShapeError for
// more elements, DeviceError for other devices.
Variable mean_over(const VariableOperand& sum, const Array& counted, double expected = 0);

}  // namespace catena::functions
