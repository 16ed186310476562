// AdaDelta: M. D. Zeiler, ADADELTA: an adaptive learning rate method, 2012.
#pragma once

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// msg = rho * msg + (1 - rho) * g^2; dx = sqrt((msdx + eps) / (msg + eps)) * g;
// msdx = rho * msdx + (1 - rho) * dx^2; p -= dx. States "msg" and "msdx".
// The rule has no learning rate. lr(), schedules and groups set a factor of dx, which is 1 at
// first and does not enter msdx.
class AdaDelta : public RuleOptimizer {
 public:
  // ValueError unless 0 <= rho < 1 and eps > 0.
  explicit AdaDelta(double rho = 0.95, double eps = 1e-6)
      : RuleOptimizer("AdaDelta", 1, {rho, eps}) {}

  // The numbers of the rule.
  double rho() const { return number(0); }
  double eps() const { return number(1); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_rho(double rho) { set_number(0, rho); }
  void set_eps(double eps) { set_number(1, eps); }
};

}  // namespace catena::optimizers
