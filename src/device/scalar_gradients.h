// Scalar functors: gradients. gy comes first, then the values that the operation saved. See
// scalar_ops.h.
#pragma once

namespace catena {
namespace ops {

struct DivideGradRhs {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    return -(gy * (a / b)) / b;  // b * b could overflow or vanish, and so could 1 / b
  }
};
struct PowerGradLhs {  // 0 where the exponent is: x to the power of 0 is 1 everywhere
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    const T product = gy * b * m::pow(a, b - T(1));
    return b == T(0) ? T(0) : product;
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
struct ClipGrad {  // y = clip(x): they are equal inside the bounds and on them
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
struct ArcsinhGrad {  // a bound of the root serves where the square overflows: |x| + 1 is |x| there
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T root = m::sqrt(x * x + T(1)), bound = m::fabs(x) + T(1);
    return gy / (bound < root ? bound : root);
  }
};
struct ArccoshGrad {  // NaN below 1, as the value is; x * x would overflow
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / (m::sqrt(x - T(1)) * m::sqrt(x + T(1)));
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
// Relative to the larger of both, whose square could overflow or vanish. Where both are 0 the angle
// has no gradient: 0. Where one is infinite, it no longer changes: 0.
struct Arctan2Grad {
  template <class T>
  static CATENA_FN T apply(T gy, T y, T x) {
    const T a = m::fabs(y), b = m::fabs(x), larger = a > b ? a : b;
    const T r = T(1) / larger, u = y * r, v = x * r;
    const T g = gy * r * (v / (u * u + v * v));
    return (r == T(0) || larger == T(0)) && a == a && b == b ? T(0) : g;
  }
};
struct Arctan2GradRhs {  // as above
  template <class T>
  static CATENA_FN T apply(T gy, T y, T x) {
    const T a = m::fabs(y), b = m::fabs(x), larger = a > b ? a : b;
    const T r = T(1) / larger, u = y * r, v = x * r;
    const T g = -gy * r * (u / (u * u + v * v));
    return (r == T(0) || larger == T(0)) && a == a && b == b ? T(0) : g;
  }
};
struct HypotGrad {  // 0 where both operands are; the sign of an operand as large as the result
  template <class T>
  static CATENA_FN T apply(T gy, T a, T h) {
    const T sign = a < T(0) ? T(-1) : T(1), share = m::fabs(a) == h ? sign : a / h;
    return h == T(0) ? T(0) : gy * share;
  }
};
struct LogaddexpGrad {  // of the operands: their sum is rounded where they are large
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    const T share = T(1) / (T(1) + m::exp(b - a));
    return gy * (a == b ? T(0.5) : share);
  }
};

}  // namespace ops
}  // namespace catena
