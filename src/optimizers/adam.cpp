#include "catena/optimizers/adam.h"

#include <cmath>

namespace catena::optimizers {

double Adam::effective_lr() const {
  const auto t = static_cast<double>(this->t());
  CATENA_CHECK(ValueError, t > 0, "effective_lr: there was no update yet");
  return alpha() * std::sqrt(1 - std::pow(beta2(), t)) / (1 - std::pow(beta1(), t));
}

}  // namespace catena::optimizers
