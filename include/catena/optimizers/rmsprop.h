// RMSprop: T. Tieleman and G. Hinton, Lecture 6.5, COURSERA: neural networks for machine learning,
// 2012.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// ms = alpha * ms + (1 - alpha) * g^2; p -= lr * g / (sqrt(ms) + eps). State "ms".
class RMSprop : public RuleOptimizer {
 public:
  // ValueError unless 0 <= alpha < 1 and eps > 0.
  explicit RMSprop(double lr = 0.01, double alpha = 0.99, double eps = 1e-8)
      : RuleOptimizer("RMSprop", lr, {alpha, eps}) {}

  // The numbers of the rule.
  double alpha() const { return number(0); }
  double eps() const { return number(1); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_alpha(double alpha) { set_number(0, alpha); }
  void set_eps(double eps) { set_number(1, eps); }
};

}  // namespace catena::optimizers
