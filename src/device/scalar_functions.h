// Scalar functors: exponentials, logarithms, trigonometry, and those activations that are array
// functions. See scalar_ops.h.
#pragma once

namespace catena {
namespace ops {

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
    const T e = m::exp(-m::fabs(x));  // exp(x) would overflow where the result is finite
    return (x < T(0) ? e : T(1)) / (T(1) + e);
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
// Here and below no condition contains a function call, so that loops over these vectorise.
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

}  // namespace ops
}  // namespace catena
