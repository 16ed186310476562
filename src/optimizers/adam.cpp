#include "catena/optimizers/adam.h"
#include "catena/kernels/optimizer.h"

#include <cmath>

#include "optimizers/rule_call.h"

namespace catena::optimizers {
namespace {

double checked_beta(const char* name, double beta) {
  CATENA_CHECK(ValueError, beta >= 0 && beta < 1, "Adam: expected ", name, " in [0, 1), got ",
               beta);
  return beta;
}

}  // namespace

Adam::Adam(double alpha, double beta1, double beta2, double eps)
    : Optimizer("alpha", alpha),
      beta1_(checked_beta("beta1", beta1)),
      beta2_(checked_beta("beta2", beta2)),
      eps_(eps) {}

void Adam::set_beta1(double beta1) { beta1_ = checked_beta("beta1", beta1); }
void Adam::set_beta2(double beta2) { beta2_ = checked_beta("beta2", beta2); }

double Adam::effective_lr() const {
  const auto t = static_cast<double>(this->t());
  CATENA_CHECK(ValueError, t > 0, "effective_lr: there was no update yet");
  return alpha() * std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t));
}

std::vector<std::pair<std::string, double>> Adam::hyper_parameters() const {
  return {{"alpha", alpha()}, {"beta1", beta1_}, {"beta2", beta2_}, {"eps", eps_}};
}

void Adam::set_hyper_parameter(const std::string& name, double value) {
  if (name == "beta1")
    set_beta1(value);
  else if (name == "beta2")
    set_beta2(value);
  else if (name == "eps")
    set_eps(value);
  else
    Optimizer::set_hyper_parameter(name, value);
}

void Adam::update_arena(const ArenaUpdate& update) {
  OptimizerCall call = rule_call(update);
  call.beta1 = beta1_;
  call.beta2 = beta2_;
  call.epsilon = eps_;
  kernels::adam(update.parameter.device(), call);
}

}  // namespace catena::optimizers
