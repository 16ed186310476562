// RMSprop: T. Tieleman and G. Hinton, Lecture 6.5, COURSERA: neural networks for machine learning,
// 2012.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// The numbers of RMSprop.
struct RMSpropOptions {
  [[no_unique_address]] catena::detail::ByName by_name = {};
  double alpha = 0.99, eps = 1e-8;
};

// ms = alpha * ms + (1 - alpha) * g^2; p -= lr * g / (sqrt(ms) + eps). State "ms".
class RMSprop : public RuleOptimizer {
 public:
  // ValueError unless 0 <= alpha < 1 and eps > 0.
  explicit RMSprop(double lr = 0.01, const RMSpropOptions& o = {})
      : RuleOptimizer("RMSprop", lr, {o.alpha, o.eps}) {}

  // The numbers of the rule.
  double alpha() const { return number(0); }
  double eps() const { return number(1); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_alpha(double alpha) { set_number(0, alpha); }
  void set_eps(double eps) { set_number(1, eps); }
};

}  // namespace catena::optimizers
