// Parts of losses: numbers in float32 or wider, reductions, checks.
#pragma once

#include "catena/functions/array/cast.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/loss/reduction.h"
#include "functions/common/support.h"

namespace catena::functions {

// x in the dtype in which losses are computed: 16-bit floats in float32.
inline Variable widened(const Variable& x) { return cast(x, compute_dtype(x.dtype())); }

// Losses, reduced, in the given dtype. `divisor`: of the mean, else their number.
Variable reduced(const Variable& losses, Reduction reduction, Dtype dtype);
Variable reduced(const Variable& losses, Reduction reduction, Dtype dtype, double divisor);

// Where an infinite loss weighs nothing. There the product of both counts 0: a class of probability
// 0 may have a score of minus infinity.
Array weighs_nothing(const Array& weight, const Array& loss);
// weight * loss, with the exception above, for losses as well as for their gradients.
Variable weighted(const Variable& weight, const Variable& loss);

// Of vectors, with gradients that are defined at 0: squared lengths of the rows of (n, ...), (n).
inline Variable squared_lengths(const Variable& x) {
  const Variable squares = square(x);
  return sum(x.ndim() == 2 ? squares : reshape(squares, {x.shape()[0], x.shape()[0] ? -1 : 0}), 1);
}

// The square root of squares, at least `least`. Where it is that, the gradient is 0.
inline Variable length_of(const Variable& squares, double least = 1e-12) {
  return sqrt(maximum(squares, least * least));
}

// The number of samples, for a divisor: at least 1.
inline double sample_count(const Variable& x) {
  return static_cast<double>(std::max<int64_t>(x.shape()[0], 1));
}

// InvalidType unless operands `a` and `b` of the call have one floating dtype and shape. Names are
// those of the declaration.
void check_pair(const FunctionCall& call, const char* name_a, const char* name_b, size_t a = 0,
                size_t b = 1);
// The same, with at least two axes: (n, size, ...).
void check_pair_of_vectors(const FunctionCall& call, const char* name_a, const char* name_b,
                           size_t a = 0, size_t b = 1);
// InvalidType unless operand t holds integer labels, (n), of the n samples of operand x.
void check_sample_labels(const FunctionCall& call, const char* name_x, const char* name_t, size_t x,
                         size_t t);
// ValueError unless the number is finite and at least 0.
void check_not_negative(const FunctionCall& call, const char* name, double value);
// Weights of the classes as the losses take them: (classes), of dtype, contiguous; ValueError,
// DtypeError or DeviceError that names the call if they are not such.
Array class_weights(const FunctionCall& call, const Array& weights, int64_t classes, Dtype dtype,
                    Device device);

}  // namespace catena::functions
