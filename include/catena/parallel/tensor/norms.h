// Norms and overflows of gradients of which each rank has slices.
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"

namespace catena::parallel {

// The parameters of which this rank has a slice: those that are placed so (Parameter::place), as
// the tensor-parallel layers place theirs.
Parameters sliced_parameters(Parameterized& model);

// Makes the norms of the optimizer's gradients those of the model that is not split: slices of all
// ranks count, and what is whole counts once. gradient_clipping, clip_grads and compute_grads_norm
// then give all ranks of `tensor` the same factor; without it what is whole drifts apart. So are
// the norms of each parameter that LAMB and LARS take. The last two are collective then, and each
// update is.
//
//   optimizer->add_hook("clip", optimizers::gradient_clipping(1));
//   parallel::share_norms(optimizer.actual_optimizer(), model, grid.tensor());
//   optimizer.setup(model);
//
// Slices are what layers have placed so before the optimizer is set up; `sliced` are placed so now.
// ValueError if the optimizer shares its norms already. Nothing waits for a device.
void share_norms(Optimizer& optimizer, Parameterized& model, Communicator& tensor,
                 const Parameters& sliced = {});

// Makes an overflow in the slices of one rank one on all ranks of `tensor`: all skip the update,
// and their loss scales fall together. One number travels in each update, which is collective.
//
//   optimizers::add_loss_scale(optimizer);
//   parallel::share_overflows(optimizer, grid.tensor());
//   optimizer.setup(model);
//
// ValueError unless the optimizer has a loss scale, and if it shares its overflows already. Nothing
// waits for a device.
void share_overflows(Optimizer& optimizer, Communicator& tensor);

}  // namespace catena::parallel
