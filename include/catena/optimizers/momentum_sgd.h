// MomentumSGD: gradient descent with a velocity.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// v = momentum * v - lr * g; p += v. State "v".
class MomentumSGD : public RuleOptimizer {
 public:
  // ValueError unless 0 <= momentum <= 1.
  explicit MomentumSGD(double lr = 0.01, double momentum = 0.9)
      : RuleOptimizer("MomentumSGD", lr, {momentum}) {}

  // The share of the last step that is kept.
  double momentum() const { return number(0); }
  // A captured graph keeps the momentum it was captured with.
  void set_momentum(double momentum) { set_number(0, momentum); }
};

}  // namespace catena::optimizers
