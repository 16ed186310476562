// Adam: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015.
#pragma once

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v);
// p -= alpha sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps). States "m" and "v".
// lr() and set_lr() mean alpha.
class Adam : public Optimizer {
 public:
  explicit Adam(double alpha = 0.001, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8);

  // The numbers of the rule.
  double alpha() const { return lr(); }
  void set_alpha(double alpha) { set_lr(alpha); }
  double beta1() const { return beta1_; }
  double beta2() const { return beta2_; }
  double eps() const { return eps_; }
  // A captured graph keeps the numbers below that it was captured with.
  void set_beta1(double beta1);
  void set_beta2(double beta2);
  void set_eps(double eps) { eps_ = eps; }
  // The rate of the last update, alpha with both bias corrections (Chainer's lr). Waits for a GPU.
  double effective_lr() const;
  std::vector<std::pair<std::string, double>> hyper_parameters() const override;
  void set_hyper_parameter(const std::string& name, double value) override;

 protected:
  std::vector<std::string> state_names() const override { return {"m", "v"}; }
  bool updates_arenas() const override { return true; }
  bool counts_updates() const final { return true; }
  void update_arena(const ArenaUpdate& update) final;

 private:
  double beta1_, beta2_, eps_;
};

}  // namespace catena::optimizers
