// From an arena's update to the arguments of the optimizer slots.
#pragma once

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// `Update` is Optimizer::ArenaUpdate, which only rules can name. The call refers to it.
template <class Update>
OptimizerCall rule_call(const Update& update) {
  OptimizerCall call{};
  call.parameter = &update.parameter;
  call.gradient = &update.gradient;
  for (size_t k = 0; k < update.states.size(); ++k) call.states[k] = &update.states[k];
  call.learning_rate = update.learning_rate;
  call.step = update.step;
  if (update.counter.defined()) call.counter = &update.counter;
  call.gradient_scale = update.gradient_scale;
  call.weight_decay = update.weight_decay;
  return call;
}

}  // namespace catena::optimizers
