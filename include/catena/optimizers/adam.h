// Adam: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015.
#pragma once

#include <optional>

#include "catena/optimizers/rule_optimizer.h"

namespace catena::optimizers {

// The numbers of Adam.
struct AdamOptions {
  [[no_unique_address]] catena::detail::ByName by_name = {};
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  // Where eps is added. false: to sqrt(v), as at the end of section 2 of the paper and in Chainer.
  // true: to the corrected root sqrt(v / (1 - beta2^t)), as in algorithm 1 of the paper and in
  // PyTorch. The first form is the second with an eps that is 1 / sqrt(1 - beta2^t) times larger,
  // 31 times at the first step: they differ where gradients are as small as eps.
  bool corrected_eps = false;
  // bfloat16: states are stored in 16 bits, half of the memory. The rule reads them, computes in
  // float32 and rounds what it writes to nearest even, so that changes of less than half the
  // distance to the next bfloat16 number, a 512th to a 256th of the value, are lost. With the
  // default beta2 = 0.999 this is every fall of v, which then only rises, by gradients of about
  // twice its root and more: take a beta2 of 0.99 at most. By default states are float32, of
  // float64 parameters float64.
  std::optional<Dtype> state_dtype = {};
  // false: 16-bit parameters have no float32 copy. The rule starts from the parameter and rounds
  // the result to nearest even; steps of less than half the distance to the next 16-bit number are
  // lost. Parameters of 32 and 64 bits never have a copy.
  bool master_copies = true;
};

// m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v);
// p -= alpha sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps), or with corrected_eps
// p -= alpha (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps). States "m" and "v".
// lr() and set_lr() mean alpha.
class Adam : public RuleOptimizer {
 public:
  // ValueError unless 0 <= beta1, beta2 < 1 and eps > 0; DtypeError for a state_dtype other than
  // bfloat16, and in setup with float64 parameters.
  explicit Adam(double alpha = 0.001, const AdamOptions& o = {})
      : RuleOptimizer("Adam", alpha, {o.beta1, o.beta2, o.eps, o.corrected_eps ? 1.0 : 0.0},
                      {o.state_dtype, o.master_copies}) {}

  // The numbers of the rule.
  double alpha() const { return lr(); }
  void set_alpha(double alpha) { set_lr(alpha); }
  double beta1() const { return number(0); }
  double beta2() const { return number(1); }
  double eps() const { return number(2); }
  bool corrected_eps() const { return number(3) != 0; }
  // A captured graph keeps the numbers below that it was captured with.
  void set_beta1(double beta1) { set_number(0, beta1); }
  void set_beta2(double beta2) { set_number(1, beta2); }
  void set_eps(double eps) { set_number(2, eps); }
  // The rate of the last update, alpha with both bias corrections (Chainer's lr). Waits for a GPU.
  double effective_lr() const;
};

}  // namespace catena::optimizers
