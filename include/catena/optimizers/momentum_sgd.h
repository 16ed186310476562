// MomentumSGD: gradient descent with a velocity.
#pragma once

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// v = momentum * v - lr * g; p += v. State "v".
class MomentumSGD : public Optimizer {
 public:
  explicit MomentumSGD(double lr = 0.01, double momentum = 0.9)
      : Optimizer("lr", lr), momentum_(momentum) {}

  double momentum() const { return momentum_; }
  // A captured graph keeps the momentum it was captured with.
  void set_momentum(double momentum) { momentum_ = momentum; }
  std::vector<std::pair<std::string, double>> hyper_parameters() const override;
  void set_hyper_parameter(const std::string& name, double value) override;

 protected:
  std::vector<std::string> state_names() const override { return {"v"}; }
  bool updates_arenas() const override { return true; }
  void update_arena(const ArenaUpdate& update) override;

 private:
  double momentum_;
};

}  // namespace catena::optimizers
