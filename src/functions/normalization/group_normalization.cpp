#include "catena/functions/normalization/group_normalization.h"

#include "functions/common/weighted_layer.h"
#include "functions/normalization/row_normalization.h"

namespace catena::functions {
namespace {

constexpr const char *kGroup = "GroupNormalization", *kInstance = "InstanceNormalization";

void check_groups(const char* name, int64_t groups, int64_t channels) {
  CATENA_CHECK(ValueError, groups >= 1 && channels % groups == 0, name, ": ", channels,
               " channels cannot be split into ", groups,
               " equal groups; use a number of groups that divides the channels");
}

void check_images(const FunctionCall& call, int64_t channels) {
  const TypeOf in(call[0].data(), "x");
  const auto advised = Checks(call.named(), in).advised([&] {
    return message("Expected is (n, ", channels, ", ...), n samples of ", channels, " channels.");
  });
  advised.require(in.ndim() >= 2);
  advised.require(in.shape(1) == channels);
}

Variable apply_groups(const char* name, const Variable& x, const Variable* gamma,
                      const Variable* beta, int64_t groups, int64_t channels, double eps) {
  check_eps(name, eps);
  check_groups(name, groups, channels);
  const RowParameters parameters{gamma, beta};
  FunctionCall call(name, Autocast::kNone, x, gamma, beta);
  check_row_types(call, parameters, {channels});
  check_images(call, channels);
  call.require_one_device();
  return normalize_rows(call, RowPlan::of_groups(call[0].data(), groups, eps), parameters)[0];
}

// The number of channels for which gamma is.
int64_t channels_of(const Variable& gamma) { return element_count(gamma.shape()); }

}  // namespace

Variable group_normalization(const VariableOperand& x, int64_t groups, const VariableOperand& gamma,
                             const VariableOperand& beta, double eps) {
  const Variable& scale = gamma.variable(kGroup);
  return apply_groups(kGroup, x.variable(kGroup), &scale, &beta.variable(kGroup), groups,
                      channels_of(scale), eps);
}

Variable instance_normalization(const VariableOperand& x, const VariableOperand& gamma,
                                const VariableOperand& beta, double eps) {
  const Variable& scale = gamma.variable(kInstance);
  const int64_t channels = channels_of(scale);
  return apply_groups(kInstance, x.variable(kInstance), &scale, &beta.variable(kInstance), channels,
                      channels, eps);
}

GroupNormalization::GroupNormalization(int64_t groups, int64_t size,
                                       const GroupNormalizationOptions& options)
    : GroupNormalization(kGroup, groups, size, options) {}

GroupNormalization::GroupNormalization(const char* layer, int64_t groups, int64_t size,
                                       const GroupNormalizationOptions& o)
    : layer_(layer),
      groups_(groups),
      size_(size),
      eps_(o.eps),
      use_gamma_(o.use_gamma),
      use_beta_(o.use_beta) {
  check_size(layer, {size});
  check_groups(layer, groups, size);
  check_eps(layer, o.eps);
  if (o.use_gamma)
    gamma =
        OwnedParameter(initial_scale(layer, "initial_gamma", {size}, o.dtype, o.initial_gamma, 1));
  if (o.use_beta)
    beta = OwnedParameter(initial_scale(layer, "initial_beta", {size}, o.dtype, o.initial_beta, 0));
}

Variable GroupNormalization::operator()(const VariableOperand& x) const {
  return apply_groups(layer_, x.variable(layer_), used_parameter(layer_, gamma, use_gamma_),
                      used_parameter(layer_, beta, use_beta_), groups_, size_, eps_);
}

void GroupNormalization::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  if (gamma.defined()) visitor(prefix + "gamma", gamma);
  if (beta.defined()) visitor(prefix + "beta", beta);
}

InstanceNormalization::InstanceNormalization(int64_t size, const GroupNormalizationOptions& options)
    : GroupNormalization(kInstance, size, size, options) {}

}  // namespace catena::functions
