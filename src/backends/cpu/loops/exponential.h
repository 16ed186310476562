// Exponentials of float in registers, for loops that would spend most of their time in calls of
// libmvec. See loop.h about linkage.
#pragma once

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

// a * b + c, rounded once on processors that can.
CATENA_FN float fused(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// |x|, at most `limit` >= 0, which stands for NaN as well. By the bits: where a comparison of
// floats chooses between x and a constant, the compiler computes what follows for both and chooses
// then.
CATENA_FN float size_at_most(float x, float limit) {
  const uint32_t size = float_bits(x) & 0x7fffffffU, most = float_bits(limit);
  return bits_float(size < most ? size : most);
}

// 2^y of y = n + part, n an integer of [-190, 60] and part of [-0.5, 0.5], is raised(part) *
// lifted(y + kRound), and so is underflow right: neither factor is subnormal.
//
// kRound leaves n + 191 in the last bits of the sum, and y + kRound - kRound is n. Shifted, these
// bits are the exponent of 2^(n + 64).
constexpr float kRound = 0x1.8p23F + 191.0F;
constexpr float kLower = 0x1p-64F;
CATENA_FN float lifted(float rounded) { return bits_float(float_bits(rounded) << 23); }
// A polynomial whose relative error is below 2e-8.
CATENA_FN float raised(float part) {
  float p = kLower * 1.5345786e-4F;
  p = fused(p, part, kLower * 1.3399958e-3F);
  p = fused(p, part, kLower * 9.6184893e-3F);
  p = fused(p, part, kLower * 5.5503287e-2F);
  p = fused(p, part, kLower * 0.24022647F);
  p = fused(p, part, kLower * 0.69314721F);
  return fused(p, part, kLower);
}

// log2(e) in two numbers.
constexpr float kLog2e = 1.442695F, kLog2eRest = 1.9259629e-8F;

// e^-a of a of [0, 120], 0 at its end.
CATENA_FN float exp_of_minus(float a) {
  const float rounded = fused(a, -kLog2e, kRound), n = rounded - kRound;
  const float part = fused(a, -kLog2eRest, fused(a, -kLog2e, -n));
  return raised(part) * lifted(rounded);
}

struct SigmoidFloat {
  static CATENA_FN float apply(float x) {
    const float e = exp_of_minus(size_at_most(x, 120.0F));
    const float y = (x < 0.0F ? e : 1.0F) / (1.0F + e);
    return x == x ? y : x;
  }
};

// By e^-2a - 1, a = |x|, which keeps the digits of small results.
struct TanhFloat {
  static CATENA_FN float apply(float x) {
    const float a = size_at_most(x, 20.0F);
    const float rounded = fused(a, -2.0F * kLog2e, kPlainRound), n = rounded - kPlainRound;
    const float part = fused(a, -2.0F * kLog2eRest, fused(a, -2.0F * kLog2e, -n));
    float p = 1.5345786e-4F;  // (2^part - 1) / part
    p = fused(p, part, 1.3399958e-3F);
    p = fused(p, part, 9.6184893e-3F);
    p = fused(p, part, 5.5503287e-2F);
    p = fused(p, part, 0.24022647F);
    p = fused(p, part, 0.69314718F);
    const float scale = lifted(rounded);  // 2^n
    const float less = fused(p * part, scale, scale - 1.0F);
    const float y = m::copysign(less / (less + 2.0F), x);
    return x == x ? y : x;
  }

 private:
  static constexpr float kPlainRound = 0x1.8p23F + 127.0F;  // n is at least -58
};

}  // namespace
}  // namespace catena::host
