// Differentiable element-wise mathematics: the rows of kernels/detail/elementwise.def on variables.
//
// Operands are variables, parameters, arrays (constants) or host numbers (weak in promotion, as in
// array/math.h), broadcast against each other; the gradient of a broadcast operand is summed back
// to its shape. At least one operand should be a variable. Each gradient is one kernel (none for
// add, subtract's left side and positive; one more for the sum over broadcast axes), and every
// function can be differentiated any number of times. Operands that want a gradient must be floats
// (InvalidType unless config().type_check is off). Shape, dtype and device errors are those of the
// array functions.
#pragma once

#include <concepts>
#include <type_traits>

#include "catena/array/math.h"
#include "catena/functions/variable_operand.h"

namespace catena {

namespace functions {

#define CATENA_UNARY(name) Variable name(const VariableOperand& x);
#define CATENA_BINARY(name) Variable name(const VariableOperand& x0, const VariableOperand& x1);
// Arithmetic and extremes; what each computes: array/math.h
CATENA_BINARY(add)
CATENA_BINARY(subtract)
CATENA_BINARY(multiply)
CATENA_BINARY(divide)
CATENA_BINARY(power)
CATENA_BINARY(maximum)  // where both are equal the gradient goes to the first
CATENA_BINARY(minimum)
CATENA_UNARY(negative)
CATENA_UNARY(positive)
CATENA_UNARY(absolute)  // gradient 0 at 0
CATENA_UNARY(square)
CATENA_UNARY(reciprocal)
// Exponentials, logarithms, trigonometry
CATENA_UNARY(exp)
CATENA_UNARY(exp2)
CATENA_UNARY(expm1)
CATENA_UNARY(log)
CATENA_UNARY(log2)
CATENA_UNARY(log10)
CATENA_UNARY(log1p)
CATENA_UNARY(sqrt)
CATENA_UNARY(rsqrt)
CATENA_UNARY(cbrt)
CATENA_UNARY(sin)
CATENA_UNARY(cos)
CATENA_UNARY(tan)
CATENA_UNARY(arcsin)
CATENA_UNARY(arccos)
CATENA_UNARY(arctan)
CATENA_UNARY(sinh)
CATENA_UNARY(cosh)
CATENA_UNARY(tanh)
CATENA_UNARY(arcsinh)
CATENA_UNARY(arccosh)
CATENA_UNARY(arctanh)
CATENA_UNARY(deg2rad)
CATENA_UNARY(rad2deg)
CATENA_UNARY(erf)
CATENA_BINARY(arctan2)
CATENA_BINARY(hypot)
CATENA_BINARY(logaddexp)
// Activations; more in activation.h
CATENA_UNARY(sigmoid)
CATENA_UNARY(softplus)
CATENA_UNARY(relu)  // gradient 0 at 0
// No gradient flows through these: their results are constants.
CATENA_UNARY(sign)
CATENA_UNARY(rint)
CATENA_UNARY(floor)
CATENA_UNARY(ceil)
CATENA_UNARY(trunc)
#undef CATENA_UNARY
#undef CATENA_BINARY
// minimum(maximum(x, low), high); the bounds are constants.
Variable clip(const VariableOperand& x, const VariableOperand& low, const VariableOperand& high);
// Element-wise condition ? x : y. The condition is a constant: bool, else InvalidType, or a host
// number, which is true unless it is 0.
Variable where(const VariableOperand& condition, const VariableOperand& x,
               const VariableOperand& y);

// NumPy's short names.
inline Variable pow(const VariableOperand& x0, const VariableOperand& x1) { return power(x0, x1); }
inline Variable abs(const VariableOperand& x) { return absolute(x); }

}  // namespace functions

// Operators, found through their arguments. `+x` is x itself; a += b rebinds to a + b.
inline Variable operator-(const Variable& x) { return functions::negative(x); }
inline Variable operator+(const Variable& x) { return x; }
#define CATENA_OPERATOR(symbol, function)                                               \
  inline Variable operator symbol(const Variable& x0, const VariableOperand& x1) {      \
    return functions::function(x0, x1);                                                 \
  }                                                                                     \
  inline Variable operator symbol(const Array& x0, const Variable& x1) {                \
    return functions::function(x0, x1);                                                 \
  }                                                                                     \
  template <class T>                                                                    \
  requires std::is_arithmetic_v<T> Variable operator symbol(T x0, const Variable& x1) { \
    return functions::function(x0, x1);                                                 \
  }                                                                                     \
  inline Variable& operator symbol##=(Variable& x0, const VariableOperand& x1) {        \
    return x0 = functions::function(x0, x1);                                            \
  }
CATENA_OPERATOR(+, add)
CATENA_OPERATOR(-, subtract)
CATENA_OPERATOR(*, multiply)
CATENA_OPERATOR(/, divide)
#undef CATENA_OPERATOR
// pow and abs of arrays are not meant: templates, for an array would be converted to a constant.
template <class T>
concept VariableLike = std::derived_from<T, Variable> || std::derived_from<T, Parameter>;
template <VariableLike V>
Variable pow(const V& x0, const VariableOperand& x1) {
  return functions::power(x0, x1);
}
inline Variable pow(const Array& x0, const Variable& x1) { return functions::power(x0, x1); }
template <class T>
requires std::is_arithmetic_v<T> Variable pow(T x0, const Variable& x1) {
  return functions::power(x0, x1);
}
template <VariableLike V>
Variable abs(const V& x) {
  return functions::absolute(x);
}

}  // namespace catena
