// LARS: Y. You, I. Gitman, B. Ginsburg, Large batch training of convolutional networks, 2017.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// The numbers of LARS.
struct LARSOptions {
  [[no_unique_address]] catena::detail::ByName by_name = {};
  double momentum = 0.9, trust = 0.001, decay = 1e-4, eps = 1e-9;
};

// For each parameter of norm P with a gradient of norm G, both above 0,
// ratio = trust * P / (G + decay * P + eps), else ratio = 1. Then
// v = momentum * v + lr * ratio * (g + decay * p); p -= v. State "v".
// Norms stay on the device. Parameters that are not to be scaled so belong in another optimizer;
// a group with decay 0 leaves the decay out of the step, not out of the ratio.
class LARS : public RuleOptimizer {
 public:
  // ValueError unless 0 <= momentum <= 1, trust > 0, decay >= 0 and eps >= 0.
  explicit LARS(double lr = 0.1, const LARSOptions& o = {})
      : RuleOptimizer("LARS", lr, {o.momentum, o.trust, o.decay, o.eps}) {}

  // The numbers of the rule.
  double momentum() const { return number(0); }
  double trust() const { return number(1); }
  double decay() const { return number(2); }
  double eps() const { return number(3); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_momentum(double momentum) { set_number(0, momentum); }
  void set_trust(double trust) { set_number(1, trust); }
  void set_decay(double decay) { set_number(2, decay); }
  void set_eps(double eps) { set_number(3, eps); }
};

}  // namespace catena::optimizers
