// Work on whole arenas that clipping and decay share.
#pragma once

#include "catena/array/math.h"
#include "catena/kernels/reduce.h"
#include "catena/optimizers/arena.h"
#include "core/compute_dtype.h"

namespace catena::optimizers {

// Sum of squares of a whole arena's block as a 0-d array, accumulated in float32 or float64.
inline Array sum_of_squares(const Array& flat) {
  Array result = Array::uninitialized({1}, compute_dtype(flat.dtype()), flat.device());
  kernels::reduce(flat.device(), ReduceCall{ReduceOp::kSumOfSquares, &flat, &result, 1});
  return result.reshape({});
}

// gradient += rate * value of two flat arrays, where the gradients in memory are those wanted
// divided by `factor`, a 0-d float64 or undefined.
inline void add_decayed(const Array& value, const Array& gradient, double rate,
                        const Array& factor = {}) {
  Array addend = multiply(value.astype(compute_dtype(value.dtype()), false), rate);
  if (factor.defined()) addend = divide(addend, factor.astype(addend.dtype(), false));
  add(gradient, addend, gradient);
}

}  // namespace catena::optimizers
