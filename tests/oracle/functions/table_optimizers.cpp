// Steps of optimizers. The operands are a parameter and its gradient in each step.
#include "catena/autograd/parameter.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/nesterov_ag.h"
#include "catena/optimizers/rmsprop.h"
#include "catena/optimizers/sgd.h"
#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace O = catena::optimizers;

Variables steps(const Inputs& in, Optimizer& optimizer) {
  const Parameter p(in.copy(0));
  optimizer.setup({p});
  if (in->has("decay")) optimizer.add_hook("decay", O::weight_decay(in->real("decay")));
  if (in->has("maxnorm")) optimizer.add_hook("clip", O::gradient_clipping(in->real("maxnorm")));
  for (size_t k = 1; k < in.count(); ++k) {
    optimizer.zero_grads();
    p.set_grad(in[k].data());
    optimizer.update();
  }
  return {p.data().copy()};
}

}  // namespace

void add_optimizers(Functions& f) {
  f["SGD"] = [](const Inputs& in) {
    O::SGD optimizer(in->real("lr"));
    return steps(in, optimizer);
  };
  f["MomentumSGD"] = [](const Inputs& in) {
    O::MomentumSGD optimizer(in->real("lr"), in->real("momentum"));
    return steps(in, optimizer);
  };
  f["NesterovAG"] = [](const Inputs& in) {
    O::NesterovAG optimizer(in->real("lr"), in->real("momentum"));
    return steps(in, optimizer);
  };
  f["Adam"] = [](const Inputs& in) {
    O::Adam optimizer(in->real("lr"), {.beta1 = in->real("beta1"),
                                       .beta2 = in->real("beta2"),
                                       .eps = in->real("eps"),
                                       .corrected_eps = in->flag("corrected")});
    return steps(in, optimizer);
  };
  f["AdamW"] = [](const Inputs& in) {
    O::AdamW optimizer(in->real("lr"), {.beta1 = in->real("beta1"),
                                        .beta2 = in->real("beta2"),
                                        .eps = in->real("eps"),
                                        .decay = in->real("own_decay")});
    return steps(in, optimizer);
  };
  f["AdaGrad"] = [](const Inputs& in) {
    O::AdaGrad optimizer(in->real("lr"), in->real("eps"));
    return steps(in, optimizer);
  };
  f["AdaDelta"] = [](const Inputs& in) {
    O::AdaDelta optimizer(in->real("rho"), in->real("eps"));
    return steps(in, optimizer);
  };
  f["RMSprop"] = [](const Inputs& in) {
    O::RMSprop optimizer(in->real("lr"), {.alpha = in->real("alpha"), .eps = in->real("eps")});
    return steps(in, optimizer);
  };
}

}  // namespace catena::oracle
