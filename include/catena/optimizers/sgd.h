// SGD: plain stochastic gradient descent.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// p -= lr * g, in one kernel for all parameters of a device and dtype.
class SGD : public RuleOptimizer {
 public:
  explicit SGD(double lr = 0.01) : RuleOptimizer("SGD", lr, {}) {}
};

}  // namespace catena::optimizers
