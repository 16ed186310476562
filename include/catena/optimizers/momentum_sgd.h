// MomentumSGD: gradient descent with a velocity.
#pragma once

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// v = momentum * v - lr * g; p += v. State "v".
class MomentumSGD : public Optimizer {
 public:
  // ValueError unless 0 <= momentum <= 1.
  explicit MomentumSGD(double lr = 0.01, double momentum = 0.9) : Optimizer("lr", lr) {
    set_momentum(momentum);
  }

  // The share of the last step that is kept.
  double momentum() const { return momentum_; }
  // A captured graph keeps the momentum it was captured with.
  void set_momentum(double momentum) {
    CATENA_CHECK(ValueError, momentum >= 0 && momentum <= 1,
                 "MomentumSGD: expected momentum in [0, 1], got ", momentum);
    momentum_ = momentum;
  }
  std::vector<std::pair<std::string, double>> hyper_parameters() const override;
  void set_hyper_parameter(const std::string& name, double value) override;

 protected:
  std::vector<std::string> state_names() const override { return {"v"}; }
  bool updates_arenas() const override { return true; }
  bool counts_updates() const final { return true; }
  void update_arena(const ArenaUpdate& update) final;

 private:
  double momentum_ = 0;
};

}  // namespace catena::optimizers
