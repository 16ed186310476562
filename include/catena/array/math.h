// Element-wise mathematics on arrays, with broadcasting and NumPy 2's promotion.
//
// Operands are arrays or host numbers. `out` may name an array that receives the result (its shape
// must be the broadcast shape) or a dtype to compute in; casts of both go by NumPy's same_kind
// rule. Errors: ShapeError, DtypeError, DeviceError naming the function. float16 and bfloat16
// compute in float32 and round once. + - * / sqrt, comparisons and integers agree bit for bit on
// all devices, the other functions within 4 ulp of the exact result. The rows live in
// detail/elementwise.def; the implementation of each is src/device/scalar_ops.h.
#pragma once

#include <cmath>
#include <concepts>

#include "catena/array/array.h"

namespace catena {

// Arithmetic, rounding, extremes
Array add(const Operand& x1, const Operand& x2, const Out& out = {});       // x1 + x2; bool: or
Array subtract(const Operand& x1, const Operand& x2, const Out& out = {});  // x1 - x2
Array multiply(const Operand& x1, const Operand& x2, const Out& out = {});  // x1 * x2; bool: and
Array divide(const Operand& x1, const Operand& x2,
             const Out& out = {});  // true quotient; integers give float64
Array floor_divide(const Operand& x1, const Operand& x2,
                   const Out& out = {});  // quotient rounded down; integer division by 0 gives 0
Array remainder(const Operand& x1, const Operand& x2,
                const Out& out = {});  // with the sign of the divisor, as Python
Array fmod(const Operand& x1, const Operand& x2,
           const Out& out = {});  // with the sign of the dividend, as C
Array power(const Operand& x1, const Operand& x2, const Out& out = {});    // x1 ** x2
Array maximum(const Operand& x1, const Operand& x2, const Out& out = {});  // larger; NaN wins
Array minimum(const Operand& x1, const Operand& x2, const Out& out = {});  // smaller; NaN wins
Array fmax(const Operand& x1, const Operand& x2, const Out& out = {});     // larger; NaN loses
Array fmin(const Operand& x1, const Operand& x2, const Out& out = {});     // smaller; NaN loses
Array negative(const Operand& x, const Out& out = {});                     // -x
Array positive(const Operand& x, const Out& out = {});                     // a copy
Array absolute(const Operand& x, const Out& out = {});                     // magnitude
Array square(const Operand& x, const Out& out = {});                       // x * x
Array sign(const Operand& x, const Out& out = {});                         // -1, 0 or 1; NaN stays
Array reciprocal(const Operand& x, const Out& out = {});  // 1 / x; integer 0 gives 0
Array rint(const Operand& x, const Out& out = {});        // nearest, ties to even
Array floor(const Operand& x, const Out& out = {});       // down
Array ceil(const Operand& x, const Out& out = {});        // up
Array trunc(const Operand& x, const Out& out = {});       // towards zero
Array clip(const Operand& x, const Operand& low, const Operand& high,
           const Out& out = {});  // minimum(maximum(x, low), high)
// With one bound only.
Array clip(const Operand& x, std::nullopt_t, const Operand& high, const Out& out = {});
Array clip(const Operand& x, const Operand& low, std::nullopt_t, const Out& out = {});

// Exponentials, logarithms, trigonometry, activations (integers are promoted to a float)
Array exp(const Operand& x, const Out& out = {});     // e^x
Array exp2(const Operand& x, const Out& out = {});    // 2^x
Array expm1(const Operand& x, const Out& out = {});   // e^x - 1, exact near 0
Array log(const Operand& x, const Out& out = {});     // natural logarithm
Array log2(const Operand& x, const Out& out = {});    // base 2
Array log10(const Operand& x, const Out& out = {});   // base 10
Array log1p(const Operand& x, const Out& out = {});   // log(1 + x), exact near 0
Array sqrt(const Operand& x, const Out& out = {});    // square root, correctly rounded
Array rsqrt(const Operand& x, const Out& out = {});   // 1 / sqrt(x)
Array cbrt(const Operand& x, const Out& out = {});    // cube root
Array sin(const Operand& x, const Out& out = {});     // radians
Array cos(const Operand& x, const Out& out = {});     // radians
Array tan(const Operand& x, const Out& out = {});     // radians
Array arcsin(const Operand& x, const Out& out = {});  // radians
Array arccos(const Operand& x, const Out& out = {});  // radians
Array arctan(const Operand& x, const Out& out = {});  // radians
Array sinh(const Operand& x, const Out& out = {});
Array cosh(const Operand& x, const Out& out = {});
Array tanh(const Operand& x, const Out& out = {});
Array arcsinh(const Operand& x, const Out& out = {});
Array arccosh(const Operand& x, const Out& out = {});
Array arctanh(const Operand& x, const Out& out = {});
Array deg2rad(const Operand& x, const Out& out = {});   // x * pi / 180
Array rad2deg(const Operand& x, const Out& out = {});   // x * 180 / pi
Array erf(const Operand& x, const Out& out = {});       // error function
Array sigmoid(const Operand& x, const Out& out = {});   // 1 / (1 + e^-x)
Array softplus(const Operand& x, const Out& out = {});  // log(1 + e^x) without overflow
Array relu(const Operand& x, const Out& out = {});      // maximum(x, 0); NaN stays
Array arctan2(const Operand& x1, const Operand& x2, const Out& out = {});  // angle of (x2, x1)
Array hypot(const Operand& x1, const Operand& x2,
            const Out& out = {});  // sqrt(x1^2 + x2^2) without overflow
Array logaddexp(const Operand& x1, const Operand& x2,
                const Out& out = {});  // log(e^x1 + e^x2) without overflow
Array logaddexp2(const Operand& x1, const Operand& x2,
                 const Out& out = {});  // log2(2^x1 + 2^x2) without overflow
Array copysign(const Operand& x1, const Operand& x2,
               const Out& out = {});  // magnitude of x1, sign of x2

// Comparisons (by value, also with integers that the dtype does not hold), logic, bits, classes
Array equal(const Operand& x1, const Operand& x2, const Out& out = {});          // bool
Array not_equal(const Operand& x1, const Operand& x2, const Out& out = {});      // bool
Array less(const Operand& x1, const Operand& x2, const Out& out = {});           // bool
Array less_equal(const Operand& x1, const Operand& x2, const Out& out = {});     // bool
Array greater(const Operand& x1, const Operand& x2, const Out& out = {});        // bool
Array greater_equal(const Operand& x1, const Operand& x2, const Out& out = {});  // bool
Array logical_and(const Operand& x1, const Operand& x2, const Out& out = {});    // bool
Array logical_or(const Operand& x1, const Operand& x2, const Out& out = {});     // bool
Array logical_xor(const Operand& x1, const Operand& x2, const Out& out = {});    // bool
Array logical_not(const Operand& x, const Out& out = {});                        // bool
Array bitwise_and(const Operand& x1, const Operand& x2, const Out& out = {});
Array bitwise_or(const Operand& x1, const Operand& x2, const Out& out = {});
Array bitwise_xor(const Operand& x1, const Operand& x2, const Out& out = {});
Array invert(const Operand& x, const Out& out = {});  // ~x; bool: not
Array left_shift(const Operand& x1, const Operand& x2,
                 const Out& out = {});  // 0 when all bits leave
Array right_shift(const Operand& x1, const Operand& x2,
                  const Out& out = {});                 // arithmetic for signed
Array isnan(const Operand& x, const Out& out = {});     // bool
Array isinf(const Operand& x, const Out& out = {});     // bool, either sign
Array isfinite(const Operand& x, const Out& out = {});  // bool
Array signbit(const Operand& x, const Out& out = {});   // bool, also for -0

// Of a plain number, as the C++ library's functions: for `if (isnan(x))` under using namespace
// catena.
template <std::floating_point T>
bool isnan(T x) {
  return std::isnan(x);
}
template <std::floating_point T>
bool isinf(T x) {
  return std::isinf(x);
}
template <std::floating_point T>
bool isfinite(T x) {
  return std::isfinite(x);
}
template <std::floating_point T>
bool signbit(T x) {
  return std::signbit(x);
}

// Other names of the same functions, as NumPy has them.
inline Array true_divide(const Operand& x1, const Operand& x2, const Out& out = {}) {
  return divide(x1, x2, out);
}
inline Array mod(const Operand& x1, const Operand& x2, const Out& out = {}) {
  return remainder(x1, x2, out);
}
inline Array abs(const Operand& x, const Out& out = {}) { return absolute(x, out); }
inline Array radians(const Operand& x, const Out& out = {}) { return deg2rad(x, out); }
inline Array degrees(const Operand& x, const Out& out = {}) { return rad2deg(x, out); }

// Operators. Comparisons give bool arrays; in-place forms write into the left array (they may not
// change its shape, and its dtype only receives what same_kind allows); of selected elements,
// x(mask) += 1, also into the array they were selected from.
inline Array operator-(const Array& x) { return negative(x); }
inline Array operator+(const Array& x) { return x; }
inline Array operator~(const Array& x) { return invert(x); }
// Both orders are spelled out for numbers: else C++20 would take x == 0 for 0 == x turned round;
// two arrays have a separate form, with the arguments exchanged.
#define CATENA_OPERATOR(symbol, function)                                                       \
  inline Array operator symbol(const Array& x1, const Array& x2) { return function(x1, x2); }   \
  inline Array operator symbol(const Array& x1, const Operand& x2) { return function(x1, x2); } \
  template <class T>                                                                            \
  requires std::is_arithmetic_v<T> Array operator symbol(const Array& x1, T x2) {               \
    return function(x1, x2);                                                                    \
  }                                                                                             \
  template <class T>                                                                            \
  requires std::is_arithmetic_v<T> Array operator symbol(T x1, const Array& x2) {               \
    return function(x1, x2);                                                                    \
  }                                                                                             \
  inline Array operator symbol(const Array& x1, const Scalar& x2) { return function(x1, x2); }  \
  inline Array operator symbol(const Scalar& x1, const Array& x2) { return function(x1, x2); }
#include "catena/array/detail/operators.def"
#define CATENA_INPLACE(symbol, function)                                    \
  inline const Array& operator symbol(const Array& x1, const Operand& x2) { \
    function(x1, x2, x1);                                                   \
    return x1;                                                              \
  }                                                                         \
  inline Array operator symbol(Selected&& x1, const Operand& x2) {          \
    function(x1, x2, x1);                                                   \
    x1.write_back();                                                        \
    return std::move(x1);                                                   \
  }
#include "catena/array/detail/inplace_operators.def"

}  // namespace catena
