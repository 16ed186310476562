// Normalization functions.
#include "catena/functions/normalization.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

// x, gamma, beta; where the case says so the averages, which become results, and a residual.
Variables batch_normalization(const Inputs& in) {
  F::NormalizationOptions options;
  options.eps = in->real("eps");
  options.relu = in->flag("relu");
  size_t next = 3;
  Array mean, var;
  if (in->has("decay")) {
    options.decay = in->real("decay");
    mean = in.copy(next++);
    var = in.copy(next++);
    options.running_mean = mean;
    options.running_var = var;
  }
  if (in->flag("residual")) options.residual = in[next];
  const Variable y = F::batch_normalization(in[0], in[1], in[2], options);
  if (!mean.defined()) return {y};
  return {y, mean, var};
}

Variables fixed_batch_normalization(const Inputs& in) {
  F::FixedBatchNormalizationOptions options;
  options.eps = in->real("eps");
  options.relu = in->flag("relu");
  if (in->flag("residual")) options.residual = in[5];
  return {F::fixed_batch_normalization(in[0], in[1], in[2], in[3], in[4], options)};
}

}  // namespace

void add_normalization(Functions& f) {
  f["batch_normalization"] = batch_normalization;
  f["fixed_batch_normalization"] = fixed_batch_normalization;
  f["layer_normalization"] = [](const Inputs& in) {
    return Variables{F::layer_normalization(in[0], in[1], in[2], in->real("eps"))};
  };
  f["add_layer_normalization"] = [](const Inputs& in) {
    const auto result = F::add_layer_normalization(in[0], in[1], in[2], in[3], in->real("eps"));
    return Variables{result.y, result.sum};
  };
  f["add_rms_normalization"] = [](const Inputs& in) {
    const auto result = F::add_rms_normalization(in[0], in[1], in[2], in->real("eps"));
    return Variables{result.y, result.sum};
  };
  f["rms_normalization"] = [](const Inputs& in) {
    return Variables{F::rms_normalization(in[0], in[1], in->real("eps"))};
  };
  f["group_normalization"] = [](const Inputs& in) {
    return Variables{
        F::group_normalization(in[0], in->integer("groups"), in[1], in[2], in->real("eps"))};
  };
  f["instance_normalization"] = [](const Inputs& in) {
    return Variables{F::instance_normalization(in[0], in[1], in[2], in->real("eps"))};
  };
  f["local_response_normalization"] = [](const Inputs& in) {
    return Variables{F::local_response_normalization(in[0], in->integer("n"), in->real("k"),
                                                     in->real("alpha"), in->real("beta"))};
  };
}

}  // namespace catena::oracle
