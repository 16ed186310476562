// SGD: plain stochastic gradient descent.
#pragma once

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// p -= lr * g, in one kernel for all parameters of a device and dtype.
class SGD : public Optimizer {
 public:
  explicit SGD(double lr = 0.01) : Optimizer("lr", lr) {}

 protected:
  bool updates_arenas() const override { return true; }
  bool counts_updates() const final { return true; }
  void update_arena(const ArenaUpdate& update) final;
};

}  // namespace catena::optimizers
