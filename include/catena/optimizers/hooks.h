// Hooks for Optimizer::add_hook. They run on the gradients before the rule, in the order they were
// added, and cost no pass over the gradients of their own where the rule's kernel can do the work.
#pragma once

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// gradient += rate * parameter. ValueError unless rate >= 0.
inline Hook weight_decay(double rate) {
  CATENA_CHECK(ValueError, rate >= 0, "weight_decay: expected a rate of at least 0, got ", rate);
  return [rate](UpdateContext& update) { update.add_weight_decay(rate); };
}

// Scales all gradients together so that their L2 norm is at most maxnorm, without waiting for a
// device (R. Pascanu, T. Mikolov, Y. Bengio, On the difficulty of training recurrent neural
// networks, ICML 2013). ValueError unless maxnorm > 0.
inline Hook gradient_clipping(double maxnorm) {
  detail::check_maxnorm("gradient_clipping", maxnorm);
  return [maxnorm](UpdateContext& update) { update.clip_norm(maxnorm); };
}

}  // namespace catena::optimizers
