// What every element-wise operation means, written a second time in long double and in 128-bit
// integers, independently of src/device/scalar_ops.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace catena::testing {

using Real = long double;
using Wide = __int128;

struct FloatReference {
  std::function<Real(Real, Real, Real)> value;
  bool exact = false;  // + - * / sqrt, selections, comparisons: the correctly rounded result
  // Products of several roundings, or an exponential of a rounded argument: more than 4 ulp.
  double ulps = 4;
  // Sums that cancel are as good as their inputs: the bound is in ulps of the largest input.
  bool of_inputs = false;
};

inline Real sign_of(Real a) { return a > 0 ? 1 : a < 0 ? -1 : a; }
inline Real relu_of(Real a) { return a > 0 ? a : a != a ? a : 0; }
inline Real python_mod(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// The larger one of two, NaN winning.
inline Real max_of(Real a, Real b) { return a != a ? a : b != b ? b : a > b ? a : b; }
inline Real min_of(Real a, Real b) { return a != a ? a : b != b ? b : a < b ? a : b; }

// The normal distribution and its density.
inline Real normal_below(Real a) { return std::erfc(-a / std::sqrt(Real(2))) / 2; }
inline Real normal_density(Real a) {
  return std::exp(-a * a / 2) / std::sqrt(2 * 3.141592653589793238462643383280L);
}
// gelu_tanh is x times the sigmoid of this.
inline Real gelu_argument(Real a) {
  return 2 * std::sqrt(2 / 3.141592653589793238462643383280L) * (a + 0.044715L * a * a * a);
}
inline Real gelu_tanh_slope(Real a) {
  const Real t = std::tanh(gelu_argument(a) / 2);
  const Real inner = std::sqrt(2 / 3.141592653589793238462643383280L) * (1 + 0.134145L * a * a);
  return (1 + t) / 2 + a * (1 - t * t) * inner / 2;
}

inline const std::map<std::string, FloatReference>& float_references() {
  using R = Real;
  constexpr R kLn2 = 0.693147180559945309417232121458L, kLn10 = 2.302585092994045684017991454684L;
  constexpr R kPi = 3.141592653589793238462643383280L;
  constexpr R kSelu = 1.050700987355480493419334985295L,
              kSeluAlpha = 1.673263242354377284817042991672L;
  static const std::map<std::string, FloatReference> table = {
      {"add", {[](R a, R b, R) { return a + b; }, true}},
      {"subtract", {[](R a, R b, R) { return a - b; }, true}},
      {"multiply", {[](R a, R b, R) { return a * b; }, true}},
      {"divide", {[](R a, R b, R) { return a / b; }, true}},
      {"floor_divide", {[](R a, R b, R) { return std::floor(a / b); }, true}},
      {"remainder", {[](R a, R b, R) { return python_mod(a, b); }, true}},
      {"fmod", {[](R a, R b, R) { return std::fmod(a, b); }, true}},
      {"power", {[](R a, R b, R) { return std::pow(a, b); }}},
      {"maximum", {[](R a, R b, R) { return max_of(a, b); }, true}},
      {"minimum", {[](R a, R b, R) { return min_of(a, b); }, true}},
      {"fmax", {[](R a, R b, R) { return std::fmax(a, b); }, true}},
      {"fmin", {[](R a, R b, R) { return std::fmin(a, b); }, true}},
      {"negative", {[](R a, R, R) { return -a; }, true}},
      {"positive", {[](R a, R, R) { return a; }, true}},
      {"absolute", {[](R a, R, R) { return std::fabs(a); }, true}},
      {"square", {[](R a, R, R) { return a * a; }, true}},
      {"sign", {[](R a, R, R) { return sign_of(a); }, true}},
      {"reciprocal", {[](R a, R, R) { return 1 / a; }, true}},
      {"rint", {[](R a, R, R) { return std::rint(a); }, true}},
      {"floor", {[](R a, R, R) { return std::floor(a); }, true}},
      {"ceil", {[](R a, R, R) { return std::ceil(a); }, true}},
      {"trunc", {[](R a, R, R) { return std::trunc(a); }, true}},
      {"clip", {[](R a, R b, R c) { return min_of(max_of(a, b), c); }, true}},
      {"where", {[](R a, R b, R c) { return a != 0 ? b : c; }, true}},
      {"exp", {[](R a, R, R) { return std::exp(a); }}},
      {"exp2", {[](R a, R, R) { return std::exp2(a); }}},
      {"expm1", {[](R a, R, R) { return std::expm1(a); }}},
      {"log", {[](R a, R, R) { return std::log(a); }}},
      {"log2", {[](R a, R, R) { return std::log2(a); }}},
      {"log10", {[](R a, R, R) { return std::log10(a); }}},
      {"log1p", {[](R a, R, R) { return std::log1p(a); }}},
      {"sqrt", {[](R a, R, R) { return std::sqrt(a); }, true}},
      {"rsqrt", {[](R a, R, R) { return 1 / std::sqrt(a); }}},
      {"cbrt", {[](R a, R, R) { return std::cbrt(a); }}},
      {"sin", {[](R a, R, R) { return std::sin(a); }}},
      {"cos", {[](R a, R, R) { return std::cos(a); }}},
      {"tan", {[](R a, R, R) { return std::tan(a); }}},
      {"arcsin", {[](R a, R, R) { return std::asin(a); }}},
      {"arccos", {[](R a, R, R) { return std::acos(a); }}},
      {"arctan", {[](R a, R, R) { return std::atan(a); }}},
      {"sinh", {[](R a, R, R) { return std::sinh(a); }}},
      {"cosh", {[](R a, R, R) { return std::cosh(a); }}},
      {"tanh", {[](R a, R, R) { return std::tanh(a); }}},
      {"arcsinh", {[](R a, R, R) { return std::asinh(a); }}},
      {"arccosh", {[](R a, R, R) { return std::acosh(a); }}},
      {"arctanh", {[](R a, R, R) { return std::atanh(a); }}},
      {"deg2rad", {[](R a, R, R) { return a * kPi / 180; }}},
      {"rad2deg", {[](R a, R, R) { return a * 180 / kPi; }}},
      {"erf", {[](R a, R, R) { return std::erf(a); }}},
      {"sigmoid", {[](R a, R, R) { return 1 / (1 + std::exp(-a)); }}},
      {"softplus",
       {[](R a, R, R) { return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a)); }}},
      {"relu", {[](R a, R, R) { return relu_of(a); }, true}},
      {"arctan2", {[](R a, R b, R) { return std::atan2(a, b); }}},
      {"hypot", {[](R a, R b, R) { return std::hypot(a, b); }}},
      {"logaddexp",
       {[](R a, R b, R) { return std::log(std::exp(a) + std::exp(b)); }, false, 4, true}},
      {"logaddexp2",
       {[](R a, R b, R) { return std::log2(std::exp2(a) + std::exp2(b)); }, false, 4, true}},
      {"copysign", {[](R a, R b, R) { return std::copysign(a, b); }, true}},
      {"equal", {[](R a, R b, R) { return R(a == b); }, true}},
      {"not_equal", {[](R a, R b, R) { return R(a != b); }, true}},
      {"less", {[](R a, R b, R) { return R(a < b); }, true}},
      {"less_equal", {[](R a, R b, R) { return R(a <= b); }, true}},
      {"greater", {[](R a, R b, R) { return R(a > b); }, true}},
      {"greater_equal", {[](R a, R b, R) { return R(a >= b); }, true}},
      {"logical_and", {[](R a, R b, R) { return R(a != 0 && b != 0); }, true}},
      {"logical_or", {[](R a, R b, R) { return R(a != 0 || b != 0); }, true}},
      {"logical_xor", {[](R a, R b, R) { return R((a != 0) != (b != 0)); }, true}},
      {"logical_not", {[](R a, R, R) { return R(a == 0); }, true}},
      {"isnan", {[](R a, R, R) { return R(std::isnan(a)); }, true}},
      {"isinf", {[](R a, R, R) { return R(std::isinf(a)); }, true}},
      {"isfinite", {[](R a, R, R) { return R(std::isfinite(a)); }, true}},
      {"signbit", {[](R a, R, R) { return R(std::signbit(a)); }, true}},
      {"divide_grad_rhs", {[](R g, R a, R b) { return -g * a / (b * b); }}},
      {"power_grad_lhs", {[](R g, R a, R b) { return b == 0 ? 0 : g * b * std::pow(a, b - 1); }}},
      {"power_grad_rhs",
       {[](R g, R a, R y) { return a == 0 ? 0 : g * y * std::log(a); }, false, 6}},
      {"maximum_grad", {[](R g, R a, R b) { return a >= b ? g : 0; }, true}},
      {"maximum_grad_rhs", {[](R g, R a, R b) { return a >= b ? 0 : g; }, true}},
      {"absolute_grad", {[](R g, R x, R) { return g * sign_of(x); }, true}},
      {"square_grad", {[](R g, R x, R) { return 2 * g * x; }}},
      {"reciprocal_grad", {[](R g, R y, R) { return -g * y * y; }}},
      {"clip_grad", {[](R g, R x, R y) { return x == y ? g : 0; }, true}},
      {"exp2_grad", {[](R g, R y, R) { return g * y * kLn2; }}},
      {"expm1_grad", {[](R g, R y, R) { return g * (y + 1); }}},
      {"log2_grad", {[](R g, R x, R) { return g / (x * kLn2); }}},
      {"log10_grad", {[](R g, R x, R) { return g / (x * kLn10); }}},
      {"log1p_grad", {[](R g, R x, R) { return g / (1 + x); }}},
      {"sqrt_grad", {[](R g, R y, R) { return g / (2 * y); }}},
      {"rsqrt_grad", {[](R g, R y, R) { return -g * y * y * y / 2; }}},
      {"cbrt_grad", {[](R g, R y, R) { return g / (3 * y * y); }}},
      {"sin_grad", {[](R g, R x, R) { return g * std::cos(x); }}},
      {"cos_grad", {[](R g, R x, R) { return -g * std::sin(x); }}},
      {"tan_grad", {[](R g, R y, R) { return g * (1 + y * y); }}},
      {"arcsin_grad", {[](R g, R x, R) { return g / std::sqrt(1 - x * x); }}},
      {"arccos_grad", {[](R g, R x, R) { return -g / std::sqrt(1 - x * x); }}},
      {"arctan_grad", {[](R g, R x, R) { return g / (1 + x * x); }}},
      {"sinh_grad", {[](R g, R x, R) { return g * std::cosh(x); }}},
      {"cosh_grad", {[](R g, R x, R) { return g * std::sinh(x); }}},
      {"tanh_grad", {[](R g, R y, R) { return g * (1 - y * y); }}},
      {"arcsinh_grad", {[](R g, R x, R) { return g / std::sqrt(x * x + 1); }}},
      {"arccosh_grad", {[](R g, R x, R) { return g / std::sqrt(x * x - 1); }}},
      {"arctanh_grad", {[](R g, R x, R) { return g / (1 - x * x); }}},
      {"erf_grad",
       {[](R g, R x, R) { return g * 2 / std::sqrt(kPi) * std::exp(-x * x); }, false, 12}},
      {"sigmoid_grad", {[](R g, R y, R) { return g * y * (1 - y); }}},
      {"softplus_grad", {[](R g, R x, R) { return g / (1 + std::exp(-x)); }}},
      {"leaky_relu", {[](R a, R s, R) { return a >= 0 ? a : s * a; }, true}},
      {"leaky_relu_grad", {[](R g, R x, R s) { return x >= 0 ? g : g * s; }, true}},
      {"leaky_relu_grad_slope", {[](R g, R x, R) { return x >= 0 ? 0 : g * x; }, true}},
      {"relu_grad", {[](R g, R y, R) { return y > 0 ? g : 0; }, true}},
      {"clipped_relu", {[](R a, R z, R) { return a <= 0 ? 0 : min_of(a, z); }, true}},
      {"clipped_relu_grad", {[](R g, R y, R z) { return 0 < y && y < z ? g : 0; }, true}},
      {"hard_tanh", {[](R a, R, R) { return min_of(max_of(a, -1), 1); }, true}},
      {"hard_tanh_grad", {[](R g, R y, R) { return -1 < y && y < 1 ? g : 0; }, true}},
      {"hard_sigmoid",
       {[](R a, R, R) { return min_of(max_of(a / 5 + 0.5L, 0), 1); }, false, 4, true}},
      {"hard_sigmoid_grad", {[](R g, R x, R) { return std::fabs(x) < 2.5L ? g / 5 : 0; }}},
      {"hard_swish",
       {[](R a, R, R) { return a * min_of(max_of(a + 3, 0), 6) / 6; }, false, 4, true}},
      {"hard_swish_grad",
       {[](R g, R x, R) { return x <= -3  ? 0
                                 : x >= 3 ? g
                                          : g * (2 * x + 3) / 6; }, false, 8,
        true}},
      {"hard_shrink", {[](R a, R bound, R) { return std::fabs(a) <= bound ? 0 : a; }, true}},
      // The function refuses bounds below 0; the kernels are alike for them, too.
      {"soft_shrink",
       {[](R a, R bound, R) {
          if (bound < 0) return a > bound ? a - bound : a + bound;
          return std::copysign(max_of(std::fabs(a) - bound, 0), a);
        },
        false}},
      {"shrink_grad", {[](R g, R x, R bound) { return std::fabs(x) <= bound ? 0 : g; }, true}},
      {"elu", {[](R a, R alpha, R) { return a >= 0 ? a : alpha * std::expm1(a); }, false, 6}},
      {"elu_grad",
       {[](R g, R x, R alpha) { return x >= 0 ? g : g * alpha * std::exp(x); }, false, 6}},
      {"selu",
       {[](R a, R, R) { return kSelu * (a >= 0 ? a : kSeluAlpha * std::expm1(a)); }, false, 6}},
      {"selu_grad",
       {[](R g, R x, R) { return g * kSelu * (x >= 0 ? 1 : kSeluAlpha * std::exp(x)); }, false, 6}},
      // erfc of a rounded argument: twice its square is the loss, at most 25 here.
      {"gelu", {[](R a, R, R) { return a * normal_below(a); }, false, 40}},
      {"gelu_grad",
       {[](R g, R x, R) { return g * (normal_below(x) + x * normal_density(x)); }, false, 12,
        true}},
      {"gelu_tanh", {[](R a, R, R) { return a / (1 + std::exp(-gelu_argument(a))); }, false, 40}},
      {"gelu_tanh_grad", {[](R g, R x, R) { return g * gelu_tanh_slope(x); }, false, 12, true}},
      {"silu", {[](R a, R, R) { return a / (1 + std::exp(-a)); }, false, 6}},
      {"silu_grad",
       {[](R g, R x, R) {
          const R s = 1 / (1 + std::exp(-x));
          return g * (s + x * s * (1 - s));
        },
        false, 12, true}},
      {"mish", {[](R a, R, R) { return a * std::tanh(std::log1p(std::exp(a))); }, false, 8}},
      {"mish_grad",
       {[](R g, R x, R) {
          const R t = std::tanh(std::log1p(std::exp(x)));
          return g * (t + x * (1 - t * t) / (1 + std::exp(-x)));
        },
        false, 12, true}},
      {"log_sigmoid",
       {[](R a, R, R) { return a < 0 ? a - std::log1p(std::exp(a)) : -std::log1p(std::exp(-a)); }}},
      {"log_sigmoid_grad", {[](R g, R x, R) { return g / (1 + std::exp(x)); }}},
      {"softsign", {[](R a, R, R) { return a / (1 + std::fabs(a)); }}},
      {"softsign_grad",
       {[](R g, R x, R) { return g / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }}},
      {"gaussian_noise", {[](R g, R v, R e) { return g * std::exp(v / 2) * e; }, false, 6}},
      {"arctan2_grad", {[](R g, R y, R x) { return g * x / (y * y + x * x); }}},
      {"arctan2_grad_rhs", {[](R g, R y, R x) { return -g * y / (y * y + x * x); }}},
      {"hypot_grad", {[](R g, R a, R h) { return g * a / h; }}},
      {"logaddexp_grad",
       {[](R g, R a, R b) { return a == b ? g / 2 : g / (1 + std::exp(b - a)); }, false, 12}},
  };
  return table;
}

// Integer operations; results wrap into the type. `bits` is the width, for shifts and invert.
using IntReference = std::function<Wide(Wide, Wide, Wide, int bits)>;

inline Wide floor_quotient(Wide a, Wide b) {
  if (b == 0) return 0;
  const Wide q = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? q - 1 : q;
}
// Wraps modulo 2^64 on the way, which keeps every narrower remainder: powers by the binary digits
// of the exponent, highest first.
inline Wide int_power(Wide a, Wide b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  for (int digit = 63; digit >= 0; --digit) {
    result *= result;
    if ((b >> digit) & 1) result *= static_cast<uint64_t>(a);
  }
  return static_cast<Wide>(result);
}

inline const std::map<std::string, IntReference>& int_references() {
  using W = Wide;
  static const std::map<std::string, IntReference> table = {
      {"add", [](W a, W b, W, int) { return a + b; }},
      {"subtract", [](W a, W b, W, int) { return a - b; }},
      {"multiply",
       [](W a, W b, W, int) {
         return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
       }},
      {"floor_divide", [](W a, W b, W, int) { return floor_quotient(a, b); }},
      {"remainder", [](W a, W b, W, int) { return b == 0 ? 0 : a - floor_quotient(a, b) * b; }},
      {"fmod", [](W a, W b, W, int) { return b == 0 ? 0 : a % b; }},
      {"power", [](W a, W b, W, int) { return int_power(a, b); }},
      {"maximum", [](W a, W b, W, int) { return a > b ? a : b; }},
      {"minimum", [](W a, W b, W, int) { return a < b ? a : b; }},
      {"fmax", [](W a, W b, W, int) { return a > b ? a : b; }},
      {"fmin", [](W a, W b, W, int) { return a < b ? a : b; }},
      {"negative", [](W a, W, W, int) { return -a; }},
      {"positive", [](W a, W, W, int) { return a; }},
      {"absolute", [](W a, W, W, int) { return a < 0 ? -a : a; }},
      {"square",
       [](W a, W, W, int) {
         return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(a));
       }},
      {"sign", [](W a, W, W, int) { return W(a > 0) - W(a < 0); }},
      {"reciprocal", [](W a, W, W, int) { return a == 1 || a == -1 ? a : 0; }},
      {"clip",
       [](W a, W b, W c, int) {
         const W x = a > b ? a : b;
         return x < c ? x : c;
       }},
      {"where", [](W a, W b, W c, int) { return a != 0 ? b : c; }},
      {"relu", [](W a, W, W, int) { return a > 0 ? a : 0; }},
      {"equal", [](W a, W b, W, int) { return W(a == b); }},
      {"not_equal", [](W a, W b, W, int) { return W(a != b); }},
      {"less", [](W a, W b, W, int) { return W(a < b); }},
      {"less_equal", [](W a, W b, W, int) { return W(a <= b); }},
      {"greater", [](W a, W b, W, int) { return W(a > b); }},
      {"greater_equal", [](W a, W b, W, int) { return W(a >= b); }},
      {"logical_and", [](W a, W b, W, int) { return W(a != 0 && b != 0); }},
      {"logical_or", [](W a, W b, W, int) { return W(a != 0 || b != 0); }},
      {"logical_xor", [](W a, W b, W, int) { return W((a != 0) != (b != 0)); }},
      {"logical_not", [](W a, W, W, int) { return W(a == 0); }},
      {"bitwise_and", [](W a, W b, W, int) { return a & b; }},
      {"bitwise_or", [](W a, W b, W, int) { return a | b; }},
      {"bitwise_xor", [](W a, W b, W, int) { return a ^ b; }},
      {"invert", [](W a, W, W, int bits) { return bits == 1 ? W(a == 0) : ~a; }},
      {"left_shift",
       [](W a, W b, W, int bits) {
         return b < 0 || b >= bits ? 0 : static_cast<W>(static_cast<uint64_t>(a) << b);
       }},
      {"right_shift",
       [](W a, W b, W, int bits) { return b < 0 || b >= bits ? (a < 0 ? W(-1) : W(0)) : a >> b; }},
  };
  return table;
}

}  // namespace catena::testing
