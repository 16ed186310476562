// Scalar functors: activations of networks and their gradients. relu, sigmoid, tanh and softplus,
// which are array functions too, are in scalar_functions.h. Conditions contain no function call, so
// that loops over these vectorise. See scalar_ops.h.
#pragma once

namespace catena {
namespace ops {

struct LeakyRelu {
  template <class T>
  static CATENA_FN T apply(T x, T slope) {
    return x >= T(0) ? x : x * slope;
  }
};
struct LeakyReluGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x, T slope) {
    return x >= T(0) ? gy : gy * slope;
  }
};
struct LeakyReluGradSlope {  // NaN where x is
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return x >= T(0) ? T(0) : gy * x;
  }
};

// NaN passes through, here and below.
struct ClippedRelu {
  template <class T>
  static CATENA_FN T apply(T x, T z) {
    return x <= T(0) ? T(0) : x >= z ? z : x;
  }
};
struct ClippedReluGrad {  // y = clipped_relu(x): x itself between the bounds
  template <class T>
  static CATENA_FN T apply(T gy, T y, T z) {
    return y > T(0) && y < z ? gy : T(0);
  }
};
struct HardTanh {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x <= T(-1) ? T(-1) : x >= T(1) ? T(1) : x;
  }
};
struct HardTanhGrad {  // of y, as above
  template <class T>
  static CATENA_FN T apply(T gy, T y) {
    return y > T(-1) && y < T(1) ? gy : T(0);
  }
};
struct HardSigmoid {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x <= T(-2.5) ? T(0) : x >= T(2.5) ? T(1) : x * T(0.2) + T(0.5);
  }
};
struct HardSigmoidGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return x > T(-2.5) && x < T(2.5) ? gy * T(0.2) : T(0);
  }
};
struct HardSwish {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x <= T(-3) ? T(0) : x >= T(3) ? x : x * (x + T(3)) * T(0.16666666666666666667);
  }
};
struct HardSwishGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T slope = (x + x + T(3)) * T(0.16666666666666666667);
    return x <= T(-3) ? T(0) : x >= T(3) ? gy : gy * slope;
  }
};
// Two of PyTorch's activations of three lines, which are 0 between -bound and bound.
struct HardShrink {
  template <class T>
  static CATENA_FN T apply(T x, T bound) {
    return x >= -bound && x <= bound ? T(0) : x;
  }
};
struct SoftShrink {
  template <class T>
  static CATENA_FN T apply(T x, T bound) {
    return x >= -bound && x <= bound ? T(0) : x > bound ? x - bound : x + bound;
  }
};
struct ShrinkGrad {  // of both; what arrives where x is NaN
  template <class T>
  static CATENA_FN T apply(T gy, T x, T bound) {
    return x >= -bound && x <= bound ? T(0) : gy;
  }
};

struct Elu {
  template <class T>
  static CATENA_FN T apply(T x, T alpha) {
    const T below = alpha * m::expm1(x);
    return x >= T(0) ? x : below;
  }
};
struct EluGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x, T alpha) {
    const T below = gy * (alpha * m::exp(x));
    return x >= T(0) ? gy : below;
  }
};
// The constants of the paper, whose fixed point has mean 0 and variance 1.
struct Selu {
  template <class T>
  static CATENA_FN T apply(T x) {
    const T below = T(1.7580993408473768600) * m::expm1(x);
    return x >= T(0) ? x * T(1.0507009873554804934) : below;
  }
};
struct SeluGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T below = T(1.7580993408473768600) * m::exp(x);
    return gy * (x >= T(0) ? T(1.0507009873554804934) : below);
  }
};

// x times the normal distribution function, by erfc, which keeps the digits of small results.
struct Gelu {
  template <class T>
  static CATENA_FN T apply(T x) {
    return T(0.5) * x * m::erfc(x * T(-0.70710678118654752440));
  }
};
struct GeluGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T density = T(0.39894228040143267794) * m::exp(T(-0.5) * x * x);
    return gy * (T(0.5) * m::erfc(x * T(-0.70710678118654752440)) + x * density);
  }
};
// 0.5 x (1 + tanh(u / 2)) = x / (1 + exp(-u)), u = sqrt(8 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  template <class T>
  static CATENA_FN T apply(T x) {
    const T u = x * (T(1.5957691216057307117) + T(0.071354816272600248776) * x * x);
    return x / (T(1) + m::exp(-u));
  }
};
struct GeluTanhGrad {  // s + x s (1 - s) u', whose second part vanishes before u' overflows
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T square = x * x;
    const T u = x * (T(1.5957691216057307117) + T(0.071354816272600248776) * square);
    const T e = m::exp(-m::fabs(u)), d = T(1) / (T(1) + e);
    const T steep = x * (T(1.5957691216057307117) + T(0.21406444881780074633) * square);
    const T bend = e == T(0) ? T(0) : steep * e * d * d;
    return gy * ((x < T(0) ? e : T(1)) * d + bend);
  }
};
struct Silu {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x / (T(1) + m::exp(-x));
  }
};
struct SiluGrad {  // s (1 + x (1 - s))
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T e = m::exp(-m::fabs(x)), d = T(1) / (T(1) + e);
    const T s = (x < T(0) ? e : T(1)) * d, rest = (x < T(0) ? T(1) : e) * d;
    return gy * (s * (T(1) + x * rest));
  }
};
// tanh(log(1 + e^x)) = n / (n + r), both scaled by e^-2x where x is positive.
struct Mish {
  template <class T>
  static CATENA_FN T apply(T x) {
    const T e = m::exp(-m::fabs(x));
    const T n = x < T(0) ? e * (e + T(2)) : T(1) + e + e, r = x < T(0) ? T(2) : T(2) * e * e;
    return x * (n / (n + r));
  }
};
struct MishGrad {  // t + x (1 - t^2) sigmoid(x)
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T e = m::exp(-m::fabs(x));
    const T n = x < T(0) ? e * (e + T(2)) : T(1) + e + e, r = x < T(0) ? T(2) : T(2) * e * e;
    const T d = T(1) / (n + r), t = n * d, s = (x < T(0) ? e : T(1)) / (T(1) + e);
    return gy * (t + x * (r * d * (T(1) + t)) * s);
  }
};

struct LogSigmoid {
  template <class T>
  static CATENA_FN T apply(T x) {
    return (x < T(0) ? x : T(0)) - m::log1p(m::exp(-m::fabs(x)));
  }
};
struct LogSigmoidGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    return gy / (T(1) + m::exp(x));
  }
};
struct Softsign {
  template <class T>
  static CATENA_FN T apply(T x) {
    return x / (T(1) + m::fabs(x));
  }
};
struct SoftsignGrad {
  template <class T>
  static CATENA_FN T apply(T gy, T x) {
    const T d = T(1) + m::fabs(x);
    return gy / (d * d);
  }
};

// A normal number of variance e^v from a standard one, times gy.
struct GaussianNoise {
  template <class T>
  static CATENA_FN T apply(T gy, T v, T eps) {
    return gy * (m::exp(T(0.5) * v) * eps);
  }
};

}  // namespace ops
}  // namespace catena
