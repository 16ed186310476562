// RMSpropGraves: A. Graves, Generating sequences with recurrent neural networks, 2013, equations 38
// to 45.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// The numbers of RMSpropGraves.
struct RMSpropGravesOptions {
  [[no_unique_address]] catena::detail::ByName by_name = {};
  double alpha = 0.95, momentum = 0.9, eps = 1e-4;
};

// n = alpha * n + (1 - alpha) * grad^2; g = alpha * g + (1 - alpha) * grad;
// delta = momentum * delta - lr * grad / sqrt(n - g^2 + eps); p += delta.
// States "n", "g" and "delta". n - g^2, a variance, counts as 0 where it is rounded to less.
class RMSpropGraves : public RuleOptimizer {
 public:
  // ValueError unless 0 <= alpha < 1, 0 <= momentum <= 1 and eps > 0.
  explicit RMSpropGraves(double lr = 1e-4, const RMSpropGravesOptions& o = {})
      : RuleOptimizer("RMSpropGraves", lr, {o.alpha, o.momentum, o.eps}) {}

  // The numbers of the rule.
  double alpha() const { return number(0); }
  double momentum() const { return number(1); }
  double eps() const { return number(2); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_alpha(double alpha) { set_number(0, alpha); }
  void set_momentum(double momentum) { set_number(1, momentum); }
  void set_eps(double eps) { set_number(2, eps); }
};

}  // namespace catena::optimizers
