// Lion: X. Chen et al., Symbolic discovery of optimization algorithms, NeurIPS 2023.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// The numbers of Lion.
struct LionOptions {
  [[no_unique_address]] catena::detail::ByName by_name = {};
  double beta1 = 0.9, beta2 = 0.99, decay = 0;
};

// p -= lr * (sign(beta1 * m + (1 - beta1) * g) + decay * p); m = beta2 * m + (1 - beta2) * g.
// State "m", half of what Adam keeps. Steps have one size: rates are 3 to 10 times smaller than
// those of AdamW, and decays larger by the same factor.
class Lion : public RuleOptimizer {
 public:
  // ValueError unless 0 <= beta1, beta2 < 1 and decay >= 0.
  explicit Lion(double lr = 1e-4, const LionOptions& o = {})
      : RuleOptimizer("Lion", lr, {o.beta1, o.beta2, o.decay}) {}

  // The numbers of the rule.
  double beta1() const { return number(0); }
  double beta2() const { return number(1); }
  double decay() const { return number(2); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_beta1(double beta1) { set_number(0, beta1); }
  void set_beta2(double beta2) { set_number(1, beta2); }
  void set_decay(double decay) { set_number(2, decay); }
};

}  // namespace catena::optimizers
