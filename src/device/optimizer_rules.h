// The update rules of optimizers as functors, compiled by g++, nvcc and NVRTC alike. Their rows are
// in include/catena/kernels/detail/optimizer_rules.def.
//
// This file includes nothing. The includer defines CATENA_FN (function qualifiers) and, in
// namespace m, sqrt for float and double and power(b, t) = b^t for a double b and a whole t.
// Contraction is off in every compiler, so that the rules agree on all devices but for power.
//
// A rule is
//   kStates     how many arrays it keeps
//   kConstants  how many numbers prepare() works out
//   kReadsStep  whether prepare() reads t
//   prepare     once for a step, in double: the constants c from the learning rate, the row's
//               numbers h and t, the number of this step from 1
//   kAnyFormat  whether there are kernels for 16-bit states, and for 16-bit parameters without a
//               master copy
//   kNeedsNorms whether step() wants a rate that follows from norms
//   kNormsOfSteps  whether these are norms of parameter and direction, not of the scaled gradient
//   ratio       of these: once for a parameter and step, in double: the factor of its rate, from h
//               and the L2 norms of parameter and scaled gradient or direction
//   direction   of norms of steps: what step() subtracts at a rate of one; moves the states on
//   step        for each element, in the type C that it computes in: factors r of the rate and d of
//               decays, gradient g, parameter p, states s. Zero p, g and start values must leave p
//               zero: arenas have gaps. With r = d = 1 the bits are those without factors.
#pragma once

namespace catena {
namespace rules {

// The gradient that a rule gets: scaled, then with L2 decay.
template <class C>
CATENA_FN C decayed(C g, C scale, C decay, C p) {
  return g * scale + decay * p;
}

// What rules without norms have.
struct PlainRate {
  static constexpr bool kAnyFormat = false;
  static constexpr bool kNeedsNorms = false, kNormsOfSteps = false;
  static CATENA_FN double ratio(const double*, double, double) { return 1; }
};

struct SGD : PlainRate {
  static constexpr int kStates = 0, kConstants = 1;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double*, double, double* c) { c[0] = rate; }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C*) {
    p = p - c[0] * r * g;
  }
};

struct MomentumSGD : PlainRate {
  static constexpr int kStates = 1, kConstants = 2;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = h[0];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    s[0] = c[1] * s[0] - c[0] * r * g;
    p = p + s[0];
  }
};

// h: beta1, beta2, epsilon, and whether epsilon is added behind the bias correction of the root, as
// in algorithm 1 of the paper. Both corrections are part of the rate, as at the end of section 2.
struct Adam : PlainRate {
  static constexpr bool kAnyFormat = true;
  static constexpr int kStates = 2, kConstants = 4;
  static constexpr bool kReadsStep = true;
  static CATENA_FN void prepare(double rate, const double* h, double t, double* c) {
    const double correction = m::sqrt(1 - m::power(h[1], t));
    c[0] = rate * (correction / (1 - m::power(h[0], t)));
    c[1] = 1 - h[0];
    c[2] = 1 - h[1];
    c[3] = h[3] != 0 ? h[2] * correction : h[2];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    s[0] = s[0] + c[1] * (g - s[0]);
    s[1] = s[1] + c[2] * (g * g - s[1]);
    p = p - c[0] * r * s[0] / (m::sqrt(s[1]) + c[3]);
  }
};

// h: beta1, beta2, epsilon, decay. Algorithm 2 of the paper with its schedule multiplier in the
// rate: the decay does not pass through the moments.
struct AdamW : PlainRate {
  static constexpr bool kAnyFormat = true;
  static constexpr int kStates = 2, kConstants = 6;
  static constexpr bool kReadsStep = true;
  static CATENA_FN void prepare(double rate, const double* h, double t, double* c) {
    c[0] = rate / (1 - m::power(h[0], t));
    c[1] = 1 - h[0];
    c[2] = 1 - h[1];
    c[3] = h[2];
    c[4] = 1 / m::sqrt(1 - m::power(h[1], t));
    c[5] = rate * h[3];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C d, C g, C& p, C* s) {
    s[0] = s[0] + c[1] * (g - s[0]);
    s[1] = s[1] + c[2] * (g * g - s[1]);
    p = p - c[5] * r * d * p - c[0] * r * s[0] / (m::sqrt(s[1]) * c[4] + c[3]);
  }
};

// h: momentum, trust, decay, epsilon. Algorithm 1 of the paper; a parameter or gradient of zeros
// gets the rate itself, as in its authors' programs.
struct LARS {
  static constexpr bool kAnyFormat = false;
  static constexpr int kStates = 1, kConstants = 3;
  static constexpr bool kReadsStep = false, kNeedsNorms = true, kNormsOfSteps = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = h[0];
    c[2] = h[2];
  }
  static CATENA_FN double ratio(const double* h, double parameter, double gradient) {
    if (!(parameter > 0 && gradient > 0)) return 1;
    return h[1] * parameter / (gradient + h[2] * parameter + h[3]);
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C d, C g, C& p, C* s) {
    s[0] = c[1] * s[0] + c[0] * r * (g + c[2] * d * p);
    p = p - s[0];
  }
};

// h: epsilon.
struct AdaGrad : PlainRate {
  static constexpr int kStates = 1, kConstants = 2;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = h[0];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    s[0] = s[0] + g * g;
    p = p - c[0] * r * g / (m::sqrt(s[0]) + c[1]);
  }
};

// h: alpha, epsilon, which is added to the root.
struct RMSprop : PlainRate {
  static constexpr int kStates = 1, kConstants = 3;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = 1 - h[0];
    c[2] = h[1];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    s[0] = s[0] + c[1] * (g * g - s[0]);
    p = p - c[0] * r * g / (m::sqrt(s[0]) + c[2]);
  }
};

// h: alpha, momentum, epsilon, which is added under the root. States: averages of squares and of
// gradients, and the step. The variance, a difference, may round to less than 0; NaN stays NaN.
struct RMSpropGraves : PlainRate {
  static constexpr int kStates = 3, kConstants = 4;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = 1 - h[0];
    c[2] = h[1];
    c[3] = h[2];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    s[0] = s[0] + c[1] * (g * g - s[0]);
    s[1] = s[1] + c[1] * (g - s[1]);
    const C variance = s[0] - s[1] * s[1];
    s[2] = c[2] * s[2] - c[0] * r * g / m::sqrt((variance < 0 ? C(0) : variance) + c[3]);
    p = p + s[2];
  }
};

// h: momentum. With the new v, as Chainer has it on CPUs and GPUs; see docs/decisions.md.
struct NesterovAG : PlainRate {
  static constexpr int kStates = 1, kConstants = 4;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = h[0];
    c[2] = h[0] * h[0];
    c[3] = 1 + h[0];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    s[0] = c[1] * s[0] - c[0] * r * g;
    p = p + c[2] * s[0] - c[3] * (c[0] * r * g);
  }
};

// h: rho, epsilon. The average of squared steps is of steps at a rate of one.
struct AdaDelta : PlainRate {
  static constexpr int kStates = 2, kConstants = 3;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = 1 - h[0];
    c[2] = h[1];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    s[0] = s[0] + c[1] * (g * g - s[0]);
    const C dx = m::sqrt((s[1] + c[2]) / (s[0] + c[2])) * g;
    s[1] = s[1] + c[1] * (dx * dx - s[1]);
    p = p - c[0] * r * dx;
  }
};

// h: epsilon. States: the memory in steps, from 1, and averages of gradients and of squares over
// it.
struct SMORMS3 : PlainRate {
  static constexpr int kStates = 3, kConstants = 2;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = h[0];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C, C g, C& p, C* s) {
    const C share = 1 / (s[0] + 1), rate = c[0] * r;
    s[1] = (1 - share) * s[1] + share * g;
    s[2] = (1 - share) * s[2] + share * g * g;
    const C x = s[1] * s[1] / (s[2] + c[1]);
    s[0] = 1 + s[0] * (1 - x);
    p = p - g * (x < rate ? x : rate) / (m::sqrt(s[2]) + c[1]);
  }
};

// h: beta1, beta2, decay. Algorithm 2 of the paper. The sign of NaN is NaN.
struct Lion : PlainRate {
  static constexpr int kStates = 1, kConstants = 4;
  static constexpr bool kReadsStep = false;
  static CATENA_FN void prepare(double rate, const double* h, double, double* c) {
    c[0] = rate;
    c[1] = 1 - h[0];
    c[2] = 1 - h[1];
    c[3] = rate * h[2];
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C d, C g, C& p, C* s) {
    const C mixed = s[0] + c[1] * (g - s[0]);
    const C sign = mixed > 0 ? C(1) : mixed < 0 ? C(-1) : mixed;
    s[0] = s[0] + c[2] * (g - s[0]);
    p = p - c[3] * r * d * p - c[0] * r * sign;
  }
};

// h: beta1, beta2, epsilon, decay. Algorithm 2 of the paper with the identity as phi; a parameter
// or step of zeros gets the rate itself, as in its authors' programs.
struct LAMB {
  static constexpr bool kAnyFormat = false;
  static constexpr int kStates = 2, kConstants = 7;
  static constexpr bool kReadsStep = true, kNeedsNorms = true, kNormsOfSteps = true;
  static CATENA_FN void prepare(double rate, const double* h, double t, double* c) {
    c[0] = rate;
    c[1] = 1 - h[0];
    c[2] = 1 - h[1];
    c[3] = h[2];
    c[4] = 1 / m::sqrt(1 - m::power(h[1], t));
    c[5] = 1 / (1 - m::power(h[0], t));
    c[6] = h[3];
  }
  static CATENA_FN double ratio(const double*, double parameter, double step) {
    return parameter > 0 && step > 0 ? parameter / step : 1;
  }
  template <class C>
  static CATENA_FN C direction(const C* c, C d, C g, C p, C* s) {
    s[0] = s[0] + c[1] * (g - s[0]);
    s[1] = s[1] + c[2] * (g * g - s[1]);
    return c[5] * s[0] / (m::sqrt(s[1]) * c[4] + c[3]) + c[6] * d * p;
  }
  template <class C>
  static CATENA_FN void step(const C* c, C r, C d, C g, C& p, C* s) {
    p = p - c[0] * r * direction(c, d, g, p, s);
  }
};

}  // namespace rules
}  // namespace catena
