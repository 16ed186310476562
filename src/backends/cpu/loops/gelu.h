// GELU and its gradient in float, without the calls and the tables of erfc, and their loops over
// 16-bit floats. See loop.h about linkage.
#pragma once

#include "backends/cpu/loops/exponential.h"
#include "backends/cpu/loops/half_rows.h"

namespace catena::host {
namespace {

// The normal distribution function at -a of a = |x| is ratio times 2^(-a^2 log2(e) / 2), whose
// exponent loses x^2 / 2 units by the rounding of the square. The ratio, close to Mills' ratio, was
// fitted as a quotient of polynomials with a relative error of 4e-8 (1 + a^2).
struct NormalTail {
  float a;      // at most 15, where the function has long been 0 in float, and so for NaN
  float power;  // 2^(-a^2 log2(e) / 2)
  float ratio;

  explicit CATENA_FN NormalTail(float x) : a(size_at_most(x, 15.0F)) {
    constexpr float kHalfLog2e = 0.72134752F;
    const float square = a * a;
    const float rounded = fused(square, -kHalfLog2e, kRound), n = rounded - kRound;
    power = raised(fused(square, -kHalfLog2e, -n)) * lifted(rounded);
    float top = 1.4135009e-2F;
    top = fused(top, a, 0.10706344F);
    top = fused(top, a, 0.34003104F);
    top = fused(top, a, 0.5F);
    float bottom = 3.5443662e-2F;
    bottom = fused(bottom, a, 0.26795775F);
    bottom = fused(bottom, a, 0.89338427F);
    bottom = fused(bottom, a, 1.477944F);
    bottom = fused(bottom, a, 1.0F);
    ratio = top / bottom;
  }
};

// As ops::Gelu and ops::GeluGrad, special values included: at -infinity GELU is NaN, and so is the
// gradient at both infinities.
struct GeluFloat {
  static CATENA_FN float apply(float x) {
    const NormalTail tail(x);
    return fused(-tail.a, tail.ratio * tail.power, x - (x < 0.0F ? x : 0.0F));
  }
};
// Of 16-bit floats: the same with shorter polynomials. The relative error is 2.6e-6 (2 + x^2), a
// fifth of the rounding of a float16 where it is largest.
struct GeluNarrow {
  static CATENA_FN float apply(float x) {
    constexpr float kHalfLog2e = 0.72134752F;
    const float a = size_at_most(x, 15.0F), square = a * a;
    const float rounded = fused(square, -kHalfLog2e, kRound), n = rounded - kRound;
    const float part = fused(square, -kHalfLog2e, -n);
    float p = kLower * 9.5700798e-3F;  // 2^part
    p = fused(p, part, kLower * 5.5918024e-2F);
    p = fused(p, part, kLower * 0.24024747F);
    p = fused(p, part, kLower * 0.69312179F);
    p = fused(p, part, kLower);
    const float top = fused(fused(5.1107121e-2F, a, 0.25006944F), a, 0.5F);
    float bottom = 0.12759727F;
    bottom = fused(bottom, a, 0.63713987F);
    bottom = fused(bottom, a, 1.2981387F);
    bottom = fused(bottom, a, 1.0F);
    return fused(-a, top / bottom * (p * lifted(rounded)), x - (x < 0.0F ? x : 0.0F));
  }
};
struct GeluGradFloat {
  static CATENA_FN float apply(float gy, float x) {
    const NormalTail tail(x);
    const float below = fused(tail.a, -0.39894228F, tail.ratio) * tail.power;
    return gy * ((x < 0.0F ? below : 1.0F - below) + (x - x));
  }
};

// How an operation computes in float, and how for 16-bit floats.
template <class Op>
struct FloatForm {
  using Wide = Op;
};
template <>
struct FloatForm<ops::Gelu> {
  using Wide = GeluFloat;
  using Narrow = GeluNarrow;
};
template <>
struct FloatForm<ops::GeluGrad> {
  using Wide = GeluGradFloat;
  using Narrow = GeluGradFloat;
};

// For for_each_row, after fill_rows: the loops of the operations that have a form of their own.
struct OwnForms {
  template <class Op, int kInputs, OpTypes kTypes, OpForm kForm, OpCost kCost>
  void row(LoopEntry (&row)[kDtypes]) const {
    using Form = FloatForm<Op>;
    if constexpr (!__is_same(typename Form::Wide, Op)) {
      fill_row<typename Form::Wide, kInputs, kTypes, kForm, kCost, float>(row);
#ifdef __AVX2__  // otherwise buffers are faster: kLanes elements are no vectors for the compiler
      fill_halves<typename Form::Narrow, kInputs, true>(row, true);
#endif
    }
  }
};

}  // namespace
}  // namespace catena::host
