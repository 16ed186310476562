// NesterovAG: Nesterov's accelerated gradient as in Y. Bengio, N. Boulanger-Lewandowski, R.
// Pascanu, Advances in optimizing recurrent networks, ICASSP 2013.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// v = momentum * v - lr * g; p += momentum^2 * v - (1 + momentum) * lr * g. State "v".
// The second formula reads the new v, as Chainer does. The paper reads the old one there.
class NesterovAG : public RuleOptimizer {
 public:
  // ValueError unless 0 <= momentum <= 1.
  explicit NesterovAG(double lr = 0.01, double momentum = 0.9)
      : RuleOptimizer("NesterovAG", lr, {momentum}) {}

  // The share of the last step that is kept.
  double momentum() const { return number(0); }
  // A captured graph keeps the momentum it was captured with.
  void set_momentum(double momentum) { set_number(0, momentum); }
};

}  // namespace catena::optimizers
