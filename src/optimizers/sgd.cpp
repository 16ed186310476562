#include "catena/optimizers/sgd.h"
#include "catena/kernels/optimizer.h"

#include "optimizers/rule_call.h"

namespace catena::optimizers {

void SGD::update_arena(const ArenaUpdate& update) {
  kernels::sgd(update.parameter.device(), rule_call(update));
}

}  // namespace catena::optimizers
