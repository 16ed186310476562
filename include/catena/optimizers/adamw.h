// AdamW: I. Loshchilov and F. Hutter, Decoupled weight decay regularization, ICLR 2019.
#pragma once

#include <optional>

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// The numbers of AdamW.
struct AdamWOptions {
  [[no_unique_address]] catena::detail::ByName by_name = {};
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.01;
  // bfloat16: of what dtype the states are. master_copies = false: 16-bit parameters are updated
  // without a float32 copy. AdamOptions says what either loses.
  std::optional<Dtype> state_dtype = {};
  bool master_copies = true;
};

// m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v);
// p -= alpha (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay * p). States "m" and "v".
// The decay acts on the parameter alone, not through the moments as the hook weight_decay does.
// lr() and set_lr() mean alpha.
class AdamW : public RuleOptimizer {
 public:
  // ValueError unless 0 <= beta1, beta2 < 1, eps > 0 and decay >= 0; DtypeError for a state_dtype
  // other than bfloat16, and in setup with float64 parameters.
  explicit AdamW(double alpha = 0.001, const AdamWOptions& o = {})
      : RuleOptimizer("AdamW", alpha, {o.beta1, o.beta2, o.eps, o.decay},
                      {o.state_dtype, o.master_copies}) {}

  // The numbers of the rule.
  double alpha() const { return lr(); }
  void set_alpha(double alpha) { set_lr(alpha); }
  double beta1() const { return number(0); }
  double beta2() const { return number(1); }
  double eps() const { return number(2); }
  double decay() const { return number(3); }
  // A captured graph keeps the numbers below that it was captured with.
  void set_beta1(double beta1) { set_number(0, beta1); }
  void set_beta2(double beta2) { set_number(1, beta2); }
  void set_eps(double eps) { set_number(2, eps); }
  void set_decay(double decay) { set_number(3, decay); }
};

}  // namespace catena::optimizers
