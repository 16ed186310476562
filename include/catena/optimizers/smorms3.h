// SMORMS3: S. Funk, RMSprop loses to SMORMS3, beware the epsilon!, 2015.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// r = 1 / (mem + 1); g = (1 - r) * g + r * grad; g2 = (1 - r) * g2 + r * grad^2;
// x = g^2 / (g2 + eps); p -= grad * min(lr, x) / (sqrt(g2) + eps); mem = 1 + mem * (1 - x).
// States "mem", which starts at 1, "g" and "g2".
class SMORMS3 : public RuleOptimizer {
 public:
  // ValueError unless eps > 0.
  explicit SMORMS3(double lr = 0.001, double eps = 1e-16) : RuleOptimizer("SMORMS3", lr, {eps}) {}

  // What keeps the divisors above 0.
  double eps() const { return number(0); }
  // A captured graph keeps the eps it was captured with.
  void set_eps(double eps) { set_number(0, eps); }
};

}  // namespace catena::optimizers
