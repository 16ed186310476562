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
//   kNeedsNorms whether step() wants a rate that follows from norms
//   ratio       of these: once for a parameter and step, in double: the factor of its rate, from h
//               and the L2 norms of parameter and scaled gradient
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
  static constexpr bool kNeedsNorms = false;
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

// h: beta1, beta2, epsilon. Both bias corrections are part of the rate, as at the end of section 2
// of the paper, so that epsilon is not corrected.
struct Adam : PlainRate {
  static constexpr int kStates = 2, kConstants = 4;
  static constexpr bool kReadsStep = true;
  static CATENA_FN void prepare(double rate, const double* h, double t, double* c) {
    c[0] = rate * (m::sqrt(1 - m::power(h[1], t)) / (1 - m::power(h[0], t)));
    c[1] = 1 - h[0];
    c[2] = 1 - h[1];
    c[3] = h[2];
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
  static constexpr int kStates = 1, kConstants = 3;
  static constexpr bool kReadsStep = false, kNeedsNorms = true;
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

}  // namespace rules
}  // namespace catena
