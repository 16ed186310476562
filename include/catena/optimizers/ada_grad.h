// AdaGrad: J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods for online learning and
// stochastic optimization, JMLR 12, 2011.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// h += g^2; p -= lr * g / (sqrt(h) + eps). State "h".
class AdaGrad : public RuleOptimizer {
 public:
  // ValueError unless eps > 0.
  explicit AdaGrad(double lr = 0.001, double eps = 1e-8) : RuleOptimizer("AdaGrad", lr, {eps}) {}

  // What keeps the divisor above 0.
  double eps() const { return number(0); }
  // A captured graph keeps the eps it was captured with.
  void set_eps(double eps) { set_number(0, eps); }
};

}  // namespace catena::optimizers
