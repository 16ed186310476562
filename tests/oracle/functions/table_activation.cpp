// Activations.
#include "catena/functions/activation.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace F = catena::functions;

void add_activation(Functions& f) {
#define CATENA_ROW(name) f[#name] = [](const Inputs& in) { return Variables{F::name(in[0])}; };
  CATENA_ROW(relu6)
  CATENA_ROW(gelu)
  CATENA_ROW(gelu_tanh)
  CATENA_ROW(hard_sigmoid)
  CATENA_ROW(hard_swish)
  CATENA_ROW(hard_tanh)
  CATENA_ROW(log_sigmoid)
  CATENA_ROW(mish)
  CATENA_ROW(selu)
  CATENA_ROW(silu)
  CATENA_ROW(swish)
  CATENA_ROW(softsign)
#undef CATENA_ROW
#define CATENA_ROW(name)                                                        \
  f[#name] = [](const Inputs& in) {                                             \
    return Variables{in.count() == 1 ? F::name(in[0]) : F::name(in[0], in[1])}; \
  };
  CATENA_ROW(swiglu)
  CATENA_ROW(geglu)
  CATENA_ROW(geglu_tanh)
#undef CATENA_ROW
  f["clipped_relu"] = [](const Inputs& in) {
    return Variables{F::clipped_relu(in[0], in->real("z"))};
  };
  f["hard_shrink"] = [](const Inputs& in) {
    return Variables{F::hard_shrink(in[0], in->real("bound"))};
  };
  f["soft_shrink"] = [](const Inputs& in) {
    return Variables{F::soft_shrink(in[0], in->real("bound"))};
  };
  f["crelu"] = [](const Inputs& in) { return Variables{F::crelu(in[0], in->integer("axis"))}; };
  f["elu"] = [](const Inputs& in) { return Variables{F::elu(in[0], in->real("alpha"))}; };
  f["leaky_relu"] = [](const Inputs& in) { return Variables{F::leaky_relu(in[0], in.operand(1))}; };
  f["softplus_beta"] = [](const Inputs& in) {
    return Variables{F::softplus(in[0], in->real("beta"))};
  };
  f["prelu"] = [](const Inputs& in) { return Variables{F::prelu(in[0], in[1])}; };
  f["maxout"] = [](const Inputs& in) {
    return Variables{F::maxout(in[0], in->integer("pool_size"), in->integer("axis"))};
  };
  f["softmax"] = [](const Inputs& in) { return Variables{F::softmax(in[0], in->integer("axis"))}; };
  f["log_softmax"] = [](const Inputs& in) {
    return Variables{F::log_softmax(in[0], in->integer("axis"))};
  };
  f["lstm"] = [](const Inputs& in) {
    const F::LstmCellResult step = F::lstm(in[0], in[1]);
    return Variables{step.c, step.h};
  };
}

}  // namespace catena::oracle
