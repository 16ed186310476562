// Scalar functors of the element-wise operations, compiled by g++, nvcc and NVRTC alike.
//
// This file includes nothing. The includer defines CATENA_FN (function qualifiers) and, in
// namespace m, the elementary functions for float and double: exp exp2 expm1 log log2 log10 log1p
// sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf pow atan2 hypot fmod
// floor ceil trunc rint copysign fabs signbit. 16-bit floats never get here: they are converted to
// float on load and rounded once on store. Contraction (fused multiply-add) is off in every
// compiler, so that
// + - * / sqrt agree bit for bit on all devices; signed integers wrap.
#pragma once

namespace catena {
namespace ops {

template <class T>
struct IsFloat {
  static constexpr bool value = false;
};
template <>
struct IsFloat<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloat<double> {
  static constexpr bool value = true;
};
template <class T>
struct IsBool {
  static constexpr bool value = false;
};
template <>
struct IsBool<bool> {
  static constexpr bool value = true;
};
template <class T>
struct IsSigned {
  static constexpr bool value = T(-1) < T(0);
};
template <>
struct IsSigned<bool> {
  static constexpr bool value = false;
};

// ---- arithmetic ---------------------------------------------------------------------------------

struct Add {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a + b);
  }
};
struct Subtract {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a - b);
  }
};
struct Multiply {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a * b);
  }
};
struct Divide {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return a / b;
  }
};
struct Negative {
  template <class T>
  static CATENA_FN T apply(T a) {
    return T(-a);
  }
};
struct Positive {
  template <class T>
  static CATENA_FN T apply(T a) {
    return a;
  }
};
struct Square {
  template <class T>
  static CATENA_FN T apply(T a) {
    return T(a * a);
  }
};

struct Absolute {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsFloat<T>::value)
      return m::fabs(a);
    else if constexpr (IsSigned<T>::value)
      return a < T(0) ? T(-a) : a;
    else
      return a;
  }
};
struct Sign {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsFloat<T>::value)
      return a > T(0) ? T(1) : a < T(0) ? T(-1) : a == T(0) ? T(0) : a;
    else if constexpr (IsSigned<T>::value)
      return a > T(0) ? T(1) : a < T(0) ? T(-1) : T(0);
    else
      return a > T(0) ? T(1) : T(0);
  }
};
struct Reciprocal {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsFloat<T>::value)
      return T(1) / a;
    else
      return a == T(0) ? T(0) : T(T(1) / a);
  }
};
// Integer division rounds down; a zero divisor gives 0; the most negative number by -1 wraps.
struct FloorDivide {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value) {
      if (b == T(0)) return a / b;
      const T mod = m::fmod(a, b);
      T quotient = (a - mod) / b;
      if (mod != T(0) && (b < T(0)) != (mod < T(0))) quotient -= T(1);
      if (quotient == T(0)) return m::copysign(T(0), a / b);
      const T down = m::floor(quotient);
      return quotient - down > T(0.5) ? down + T(1) : down;
    } else if constexpr (IsSigned<T>::value) {
      if (b == T(0)) return T(0);
      if (b == T(-1)) return T(-a);
      const T q = T(a / b);
      return T(q * b) != a && ((a < T(0)) != (b < T(0))) ? T(q - 1) : q;
    } else {
      return b == T(0) ? T(0) : T(a / b);
    }
  }
};
// Sign of the divisor, as Python.
struct Remainder {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value) {
      const T mod = m::fmod(a, b);
      if (b == T(0)) return mod;
      if (mod == T(0)) return m::copysign(T(0), b);
      return (b < T(0)) != (mod < T(0)) ? mod + b : mod;
    } else if constexpr (IsSigned<T>::value) {
      if (b == T(0) || b == T(-1)) return T(0);
      const T r = T(a % b);
      return r != T(0) && ((r < T(0)) != (b < T(0))) ? T(r + b) : r;
    } else {
      return b == T(0) ? T(0) : T(a % b);
    }
  }
};
// Sign of the dividend, as C.
struct Fmod {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value)
      return m::fmod(a, b);
    else if constexpr (IsSigned<T>::value)
      return b == T(0) || b == T(-1) ? T(0) : T(a % b);
    else
      return b == T(0) ? T(0) : T(a % b);
  }
};
struct Power {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value) {
      return m::pow(a, b);
    } else {
      if constexpr (IsSigned<T>::value) {
        if (b < T(0))
          return a == T(1) ? T(1) : a == T(-1) ? (b % T(2) == T(0) ? T(1) : T(-1)) : T(0);
      }
      T result = T(1), base = a;
      for (T e = b; e > T(0); e = T(e / T(2))) {
        if (e % T(2) == T(1)) result = T(result * base);
        base = T(base * base);
      }
      return result;
    }
  }
};
// NaN wins in maximum and minimum and loses in fmax and fmin.
struct Maximum {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};
struct Fmax {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return a >= b || b != b ? a : b;
  }
};
struct Fmin {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return a <= b || b != b ? a : b;
  }
};
struct Rint {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::rint(a);
  }
};
struct Floor {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::floor(a);
  }
};
struct Ceil {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::ceil(a);
  }
};
struct Trunc {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::trunc(a);
  }
};
// minimum(maximum(x, low), high)
struct Clip {
  template <class T>
  static CATENA_FN T apply(T x, T low, T high) {
    return Minimum::apply(Maximum::apply(x, low), high);
  }
};
struct Where {
  template <class T>
  static CATENA_FN T apply(bool condition, T x, T y) {
    return condition ? x : y;
  }
};

// ---- exponentials, logarithms, trigonometry, activations ----------------------------------------

struct Exp {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::exp(x);
  }
};
struct Exp2 {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::exp2(x);
  }
};
struct Expm1 {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::expm1(x);
  }
};
struct Log {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::log(x);
  }
};
struct Log2 {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::log2(x);
  }
};
struct Log10 {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::log10(x);
  }
};
struct Log1p {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::log1p(x);
  }
};
struct Sqrt {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  static CATENA_FN T apply(T x) {
    return T(1) / m::sqrt(x);
  }
};
struct Cbrt {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::cbrt(x);
  }
};
struct Sin {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::sin(x);
  }
};
struct Cos {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::cos(x);
  }
};
struct Tan {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::tan(x);
  }
};
struct Arcsin {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::asin(x);
  }
};
struct Arccos {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::acos(x);
  }
};
struct Arctan {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::atan(x);
  }
};
struct Sinh {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::sinh(x);
  }
};
struct Cosh {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::cosh(x);
  }
};
struct Tanh {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::tanh(x);
  }
};
struct Arcsinh {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::asinh(x);
  }
};
struct Arccosh {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::acosh(x);
  }
};
struct Arctanh {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::atanh(x);
  }
};
struct Deg2rad {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x * T(0.017453292519943295769);
  }
};
struct Rad2deg {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x * T(57.295779513082320877);
  }
};
struct Erf {
  template <class T>
  static CATENA_FN T apply(T x) {
    return m::erf(x);
  }
};
struct Sigmoid {
  template <class T>
  static CATENA_FN T apply(T x) {
    return T(1) / (T(1) + m::exp(-x));
  }
};
// log(1 + e^x) without overflow.
struct Softplus {
  template <class T>
  static CATENA_FN T apply(T x) {
    return (x > T(0) ? x : T(0)) + m::log1p(m::exp(-m::fabs(x)));
  }
};
// NaN passes through.
struct Relu {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x <= T(0) ? T(0) : x;
  }
};
struct Arctan2 {
  template <class T>
  static CATENA_FN T apply(T y, T x) {
    return m::atan2(y, x);
  }
};
struct Hypot {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return m::hypot(a, b);
  }
};
// No call stands inside a condition here and below, so that loops over these vectorise.
struct Logaddexp {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    const T d = a - b, tail = m::log1p(m::exp(-m::fabs(d)));
    // Equal infinities; then NaN.
    return a == b ? a + T(0.69314718055994530942) : d != d ? d : (a > b ? a : b) + tail;
  }
};
struct Logaddexp2 {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    const T d = a - b, tail = m::log1p(m::exp2(-m::fabs(d))) * T(1.4426950408889634074);
    return a == b ? a + T(1) : d != d ? d : (a > b ? a : b) + tail;
  }
};
struct Copysign {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return m::copysign(a, b);
  }
};

// ---- comparisons, logic, bits, classification ---------------------------------------------------

struct Equal {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a >= b;
  }
};
struct LogicalAnd {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return (a != T(0)) != (b != T(0));
  }
};
struct LogicalNot {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a == T(0);
  }
};
struct BitwiseAnd {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a ^ b);
  }
};
struct Invert {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsBool<T>::value)
      return !a;
    else
      return T(~a);
  }
};
// Shifts by the width or more (or by negative counts) give 0, or -1 for negative numbers to the
// right.
struct LeftShift {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return b >= T(0) && b < T(sizeof(T) * 8) ? T(a << b) : T(0);
  }
};
struct RightShift {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if (b >= T(0) && b < T(sizeof(T) * 8)) return T(a >> b);
    return a < T(0) ? T(-1) : T(0);
  }
};
struct Isnan {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a != a;
  }
};
struct Isinf {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a == a && a - a != T(0);
  }
};
struct Isfinite {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a - a == T(0);
  }
};
struct Signbit {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return m::signbit(a);
  }
};

// ---- gradients: gy first, then what the operation saved -----------------------------------------

struct DivideGradRhs {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    return -gy * a / (b * b);
  }
};
struct PowerGradLhs {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    return gy * b * m::pow(a, b - T(1));
  }
};
struct PowerGradRhs {  // 0 where the base is 0: the limit for positive exponents
  template <class T>
  static CATENA_FN T apply(T gy, T a, T y) {
    const T product = gy * y * m::log(a);
    return a == T(0) ? T(0) : product;
  }
};
struct MaximumGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    return a >= b ? gy : T(0);
  }
};
struct MaximumGradRhs {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    return a >= b ? T(0) : gy;
  }
};
struct AbsoluteGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return x > T(0) ? gy : x < T(0) ? -gy : T(0);
  }
};
struct SquareGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return T(2) * gy * x;
  }
};
struct ReciprocalGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return -gy * y * y;
  }
};
struct ClipGrad {  // y = clip(x): equal inside the bounds and on them
  template <class T>
  static CATENA_FN T apply(T gy, T x, T y) {
    return x == y ? gy : T(0);
  }
};
struct Exp2Grad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return gy * y * T(0.69314718055994530942);
  }
};
struct Expm1Grad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return gy * (y + T(1));
  }
};
struct Log2Grad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy * T(1.4426950408889634074) / x;
  }
};
struct Log10Grad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy * T(0.43429448190325182765) / x;
  }
};
struct Log1pGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / (x + T(1));
  }
};
struct SqrtGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return gy / (y + y);
  }
};
struct RsqrtGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return T(-0.5) * gy * y * y * y;
  }
};
struct CbrtGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return gy / (T(3) * y * y);
  }
};
struct SinGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy * m::cos(x);
  }
};
struct CosGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return -gy * m::sin(x);
  }
};
struct TanGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return gy * (T(1) + y * y);
  }
};
struct ArcsinGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / m::sqrt(T(1) - x * x);
  }
};
struct ArccosGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return -gy / m::sqrt(T(1) - x * x);
  }
};
struct ArctanGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / (T(1) + x * x);
  }
};
struct SinhGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy * m::cosh(x);
  }
};
struct CoshGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy * m::sinh(x);
  }
};
struct TanhGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return gy * (T(1) - y * y);
  }
};
struct ArcsinhGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / m::sqrt(x * x + T(1));
  }
};
struct ArccoshGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / m::sqrt(x * x - T(1));
  }
};
struct ArctanhGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / (T(1) - x * x);
  }
};
struct ErfGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy * T(1.1283791670955125739) * m::exp(-x * x);
  }
};
struct SigmoidGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return gy * y * (T(1) - y);
  }
};
struct SoftplusGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / (T(1) + m::exp(-x));
  }
};
struct ReluGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return y > T(0) ? gy : T(0);
  }
};
struct Arctan2Grad {
  template <class T>
  static CATENA_FN T apply(T gy, T y, T x) {
    return gy * x / (y * y + x * x);
  }
};
struct Arctan2GradRhs {
  template <class T>
  static CATENA_FN T apply(T gy, T y, T x) {
    return -gy * y / (y * y + x * x);
  }
};
struct HypotGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T h) {
    return gy * a / h;
  }
};
struct LogaddexpGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T y) {
    return gy * m::exp(a - y);
  }
};

}  // namespace ops
}  // namespace catena
