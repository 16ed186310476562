// LAMB: Y. You et al., Large batch optimization for deep learning: training BERT in 76 minutes,
// ICLR 2020, algorithm 2.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// The numbers of LAMB.
struct LAMBOptions {
  [[no_unique_address]] catena::detail::ByName by_name = {};
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6, decay = 0.01;
};

// m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v);
// u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay * p;
// p -= alpha * |p| / |u| * u, with the norms of each parameter, and without their quotient where
// one of them is 0. States "m" and "v". lr() and set_lr() mean alpha. Norms stay on the device: a
// first pass sums squares of p and u, the second updates.
class LAMB : public RuleOptimizer {
 public:
  // ValueError unless 0 <= beta1, beta2 < 1, eps > 0 and decay >= 0.
  explicit LAMB(double alpha = 0.001, const LAMBOptions& o = {})
      : RuleOptimizer("LAMB", alpha, {o.beta1, o.beta2, o.eps, o.decay}) {}

  // The numbers of the rule.
  double alpha() const { return lr(); }
  void set_alpha(double alpha) { set_lr(alpha); }
  double beta1() const { return number(0); }
  double beta2() const { return number(1); }
  double eps() const { return number(2); }
  double decay() const { return number(3); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_beta1(double beta1) { set_number(0, beta1); }
  void set_beta2(double beta2) { set_number(1, beta2); }
  void set_eps(double eps) { set_number(2, eps); }
  void set_decay(double decay) { set_number(3, decay); }
};

}  // namespace catena::optimizers
