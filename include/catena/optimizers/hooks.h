// Hooks for Optimizer::add_hook. They run on the gradients before the rule, in the order they were
// added, and cost no pass over the gradients of their own where the rule's kernel can do the work.
#pragma once

#include <cstdint>

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

// The hooks below write into the gradients in memory (UpdateContext::apply): two or three passes
// over them. Nothing waits for a device, and captured updates repeat them.

// gradient += rate * sign(parameter), the gradient of rate times the sum of absolute values
// (R. Tibshirani, Regression shrinkage and selection via the lasso, 1996). Groups multiply the rate
// by their decay. ValueError unless rate >= 0.
Hook Lasso(double rate);

// Keeps each element of the gradients in [lower, upper]; NaN stays. ValueError unless
// lower <= 0 <= upper and one of them differs from 0.
Hook gradient_hard_clipping(double lower, double upper);

// gradient += normal noise of variance eta / (1 + t)^gamma, where t counts the updates before this
// one (A. Neelakantan et al., Adding gradient noise improves learning for very deep networks,
// 2015). Every hook has a generator of its own, which begins at `seed`, and draws for one parameter
// after the other in the order of declaration: ranks, which give equal seeds, add the same noise to
// their common gradients, however these are spread. Optimizers, those of the
// stages of a pipeline too, get different seeds, and a resumed run a new one, or its noise begins
// anew. ValueError unless eta and gamma are at least 0.
Hook GradientNoise(double eta, double gamma = 0.55, uint64_t seed = 0);

}  // namespace catena::optimizers
