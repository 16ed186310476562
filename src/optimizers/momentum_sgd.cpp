#include "catena/optimizers/momentum_sgd.h"
#include "catena/kernels/optimizer.h"

#include "optimizers/rule_call.h"

namespace catena::optimizers {

std::vector<std::pair<std::string, double>> MomentumSGD::hyper_parameters() const {
  return {{"lr", lr()}, {"momentum", momentum_}};
}

void MomentumSGD::set_hyper_parameter(const std::string& name, double value) {
  if (name == "momentum")
    set_momentum(value);
  else
    Optimizer::set_hyper_parameter(name, value);
}

void MomentumSGD::update_arena(const ArenaUpdate& update) {
  OptimizerCall call = rule_call(update);
  call.beta1 = momentum_;
  kernels::momentum_sgd(update.parameter.device(), call);
}

}  // namespace catena::optimizers
