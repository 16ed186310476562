#include "functions/activation/second_order.h"

#include <cmath>
#include <numbers>

#include "catena/array/math.h"
#include "catena/functions/math/elementwise.h"

namespace catena::functions {

Variable where_negative(const Variable& x, const Variable& y) {
  return where(catena::less(x.data(), 0.0), y, 0.0);
}

// (x + x^2 / 3)' between -3 and 3, whose slope is linear there.
Variable hard_swish_curvature(const Variable& x) {
  const Array inside = catena::less(catena::absolute(x.data()), 3.0);
  return Variable::constant(inside.astype(x.dtype()) * (1.0 / 3));
}

// Of x Phi(x): (2 - x^2) phi(x).
Variable gelu_curvature(const Variable& x) {
  const Variable s = square(x);
  return (2.0 - s) * exp(s * -0.5) * (1 / std::sqrt(2 * std::numbers::pi));
}

// Of x s(u(x)) with s the sigmoid: 2 s' u' + x (s'' u'^2 + s' u''), where u is a cubic.
Variable gelu_tanh_curvature(const Variable& x) {
  const double linear = std::sqrt(8 / std::numbers::pi), cubic = linear * 0.044715;
  const Variable x2 = square(x);
  const Variable u = x * (linear + x2 * cubic), s = sigmoid(u);
  // 1 - s would lose the digits of the tail, which x u'^2 makes large.
  const Variable slope = s * sigmoid(negative(u));
  const Variable u1 = linear + x2 * (3 * cubic), u2 = x * (6 * cubic);
  return slope * (2.0 * u1 + x * ((1.0 - 2.0 * s) * square(u1) + u2));
}

// Of x s(x): 2 s' + x s''.
Variable silu_curvature(const Variable& x) {
  const Variable s = sigmoid(x);
  return s * (1.0 - s) * (2.0 + x * (1.0 - 2.0 * s));
}

// Of x t with t = tanh(softplus(x)): t' = (1 - t^2) s, t'' = t' (1 - s - 2 t s).
Variable mish_curvature(const Variable& x) {
  const Variable s = sigmoid(x), t = tanh(softplus(x));
  return (1.0 - square(t)) * s * (2.0 + x * (1.0 - s - 2.0 * t * s));
}

}  // namespace catena::functions
