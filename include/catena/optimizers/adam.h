// Adam: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v);
// p -= alpha sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps). States "m" and "v".
// lr() and set_lr() mean alpha.
class Adam : public RuleOptimizer {
 public:
  // ValueError unless 0 <= beta1, beta2 < 1 and eps > 0.
  explicit Adam(double alpha = 0.001, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8)
      : RuleOptimizer("Adam", alpha, {beta1, beta2, eps}) {}

  // The numbers of the rule.
  double alpha() const { return lr(); }
  void set_alpha(double alpha) { set_lr(alpha); }
  double beta1() const { return number(0); }
  double beta2() const { return number(1); }
  double eps() const { return number(2); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_beta1(double beta1) { set_number(0, beta1); }
  void set_beta2(double beta2) { set_number(1, beta2); }
  void set_eps(double eps) { set_number(2, eps); }
  // The rate of the last update, alpha with both bias corrections (Chainer's lr). Waits for a GPU.
  double effective_lr() const;
};

}  // namespace catena::optimizers
