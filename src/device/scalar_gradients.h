// Scalar functors: gradients. gy comes first, then the values that the operation saved. See
// scalar_ops.h.
#pragma once

namespace catena {
namespace ops {

struct DivideGradRhs {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T b) {
    const T r = T(1) / b;  // b * b could overflow or vanish
    return -(gy * r) * (a * r);
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
struct ArccoshGrad {  // as above
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T root = m::sqrt(x * x - T(1));
    return gy / (x < root ? x : root);
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
struct Arctan2Grad {  // relative to the larger of both, whose square could overflow or vanish
  template <class T>
  static CATENA_FN T apply(T gy, T y, T x) {
    const T a = m::fabs(y), b = m::fabs(x);
    const T r = T(1) / (a > b ? a : b), u = y * r, v = x * r;
    return gy * r * (v / (u * u + v * v));
  }
};
struct Arctan2GradRhs {  // as above
  template <class T>
  static CATENA_FN T apply(T gy, T y, T x) {
    const T a = m::fabs(y), b = m::fabs(x);
    const T r = T(1) / (a > b ? a : b), u = y * r, v = x * r;
    return -gy * r * (u / (u * u + v * v));
  }
};
struct HypotGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T a, T h) {
    return gy * (a / h);
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
