// Gate functions and their derivatives.
#pragma once

#include <math.h>

#include "backends/cuda/activation/gated.h"

namespace catena::gpu {
namespace {

struct PreciseMath {
  static __device__ float exp_of(float x) { return expf(x); }
  static __device__ double exp_of(double x) { return exp(x); }
  template <class C>
  static __device__ C inverse(C x) {
    return C(1) / x;
  }
  // The share of a standard normal distribution below x; e is exp(-x^2 / 2).
  static __device__ float share_below(float x, float) {
    return 0.5f * erfcf(x * -0.70710678118654752440f);
  }
  static __device__ double share_below(double x, double) {
    return 0.5 * erfc(x * -0.70710678118654752440);
  }
};
// The hardware's exponentials and quotients, with errors of a few units in the last place of a
// float, which are lost where results are rounded to 16 bits.
struct RoughMath {
  static __device__ float exp_of(float x) { return __expf(x); }
  static __device__ float inverse(float x) { return __fdividef(1.0f, x); }
  // The smaller of the shares on both sides of x is e times a polynomial in t = 1 / (1 + c |x|),
  // which was fitted to a relative error of 4e-7 for all x.
  static __device__ float share_below(float x, float e) {
    const float t = inverse(fmaf(0.426031836f, fabsf(x), 1.0f));
    float share = fmaf(-0.0466641195f, t, 0.206925388f);
    share = fmaf(share, t, -0.319697117f);
    share = fmaf(share, t, 0.135977718f);
    share = fmaf(share, t, 0.0385043075f);
    share = fmaf(share, t, 0.145575125f);
    share = fmaf(share, t, 0.169396406f);
    share = fmaf(share, t, 0.169982132f) * t * e;
    return x < 0.0f ? share : 1.0f - share;
  }
};

__device__ inline float size_of(float x) { return fabsf(x); }
__device__ inline double size_of(double x) { return fabs(x); }

// The function of a gate and its derivative.
template <class C>
struct Gate {
  C value, slope;
};

template <Gated kFunction, class Math, class C>
__device__ Gate<C> gate_of(C x) {
  if constexpr (kFunction == Gated::kSilu) {
    const C e = Math::exp_of(-size_of(x)), d = Math::inverse(C(1) + e);
    const C s = (x < C(0) ? e : C(1)) * d, rest = (x < C(0) ? C(1) : e) * d;
    return {x * s, s * (C(1) + x * rest)};
  } else if constexpr (kFunction == Gated::kGelu) {
    const C e = Math::exp_of(C(-0.5) * x * x), below = Math::share_below(x, e);
    return {x * below, below + x * (C(0.39894228040143267794) * e)};
  } else {  // x s(u) with u = sqrt(8 / pi) (x + 0.044715 x^3); x s (1 - s) u' ends before u' does
    const C square = x * x;
    const C u = x * (C(1.5957691216057307117) + C(0.071354816272600248776) * square);
    const C e = Math::exp_of(-size_of(u)), d = Math::inverse(C(1) + e);
    const C s = (x < C(0) ? e : C(1)) * d;
    const C steep = x * (C(1.5957691216057307117) + C(0.21406444881780074633) * square);
    return {x * s, s + (e == C(0) ? C(0) : steep * e * d * d)};
  }
}

}  // namespace
}  // namespace catena::gpu
