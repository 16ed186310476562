#include "catena/functions/normalization/layer_normalization.h"

#include "catena/autograd/autocast.h"
#include "catena/core/dtype_info.h"
#include "catena/functions/array/cast.h"
#include "functions/common/weighted_layer.h"
#include "functions/normalization/row_normalization.h"

namespace catena::functions {
namespace {

constexpr const char *kLayer = "LayerNormalization", *kRms = "RMSNormalization";
constexpr const char *kAddLayer = "AddLayerNormalization", *kAddRms = "AddRMSNormalization";

// "(..., 2, 3)"
std::string rows_text(const Shape& size) {
  std::string text = "(...";
  for (const int64_t extent : size) text += message(", ", extent);
  return text + ")";
}

void check_rows(const FunctionCall& call, const Shape& size) {
  const Array& x = call[0].data();
  const TypeOf in(x, "x");
  const auto advised = Checks(call.named(), in).advised([&] {
    return message("Expected is ", rows_text(size), ", whose last ",
                   size.ndim() == 1 ? "axis is" : "axes are", " normalized.");
  });
  const int first = x.ndim() - size.ndim();
  advised.require(in.ndim() >= size.ndim());
  for (int i = 0; i < size.ndim(); ++i) advised.require(in.shape(first + i) == size[size_t(i)]);
}

void check_added(const FunctionCall& call) {
  const Array &x = call[0].data(), &residual = call[call.size() - 1].data();
  const TypeOf in(x, "x"), other(residual, "residual");
  const auto advised = Checks(call.named(), in, other)
                           .advised("Expected is a residual of the shape of x, of floats.");
  advised.require(other.dtype() == in.dtype(), other.ndim() == in.ndim());
  for (int i = 0; i < x.ndim(); ++i) advised.require(other.shape(i) == in.shape(i));
}

// The dtype in which x and the other one, floats of different dtypes, are added: the wider one, and
// in an autocast scope its 16 bits, in which the stream goes on.
Dtype dtype_of_sum(Dtype x, Dtype other) {
  const Dtype wide = promote_types(x, other), low = AutocastScope::low();
  const bool is_low = is_narrow_float(low) && wide == Dtype::kFloat32;
  return is_low ? low : wide;
}
Variable as_added(const Variable& x, const Variable& other) {
  if (x.dtype() == other.dtype() || !is_float(x.dtype()) || !is_float(other.dtype())) return x;
  return cast(x, dtype_of_sum(x.dtype(), other.dtype()));
}

// `beta` is null for root mean squares, `residual` where nothing is added.
Variables apply_rows(const char* name, const Variable& x, const Variable* gamma,
                     const Variable* beta, const Shape& size, double eps,
                     const Variable* residual = nullptr) {
  check_eps(name, eps);
  CATENA_CHECK(ShapeError, size.ndim() >= 1, name, ": gamma is one number, of shape (), expected ",
               "is the shape of the last axes of x, whose shape is ", x.shape());
  const RowParameters parameters{gamma, beta};
  FunctionCall call(name, Autocast::kNone, x, gamma, beta, residual);
  check_row_types(call, parameters, size);
  check_rows(call, size);
  if (residual != nullptr) check_added(call);
  call.require_one_device();
  const bool centred = name == kLayer || name == kAddLayer;
  return normalize_rows(call, RowPlan::of_last_axes(call[0].data(), size, eps, centred), parameters,
                        residual != nullptr);
}

AddNormalizationResult apply_sum(const char* name, const Variable& x, const Variable& residual,
                                 const Variable* gamma, const Variable* beta, const Shape& size,
                                 double eps) {
  const Variable added = as_added(residual, x);
  const Variables results = apply_rows(name, as_added(x, residual), gamma, beta, size, eps, &added);
  return {results[0], results[1]};
}

const Shape& checked(const char* layer, const Shape& size, double eps) {
  check_size(layer, size);
  check_eps(layer, eps);
  return size;
}

}  // namespace

Variable layer_normalization(const VariableOperand& x, const VariableOperand& gamma,
                             const VariableOperand& beta, double eps) {
  const Variable& scale = gamma.variable(kLayer);
  return apply_rows(kLayer, x.variable(kLayer), &scale, &beta.variable(kLayer), scale.shape(),
                    eps)[0];
}

AddNormalizationResult add_layer_normalization(const VariableOperand& x,
                                               const VariableOperand& residual,
                                               const VariableOperand& gamma,
                                               const VariableOperand& beta, double eps) {
  const Variable& scale = gamma.variable(kAddLayer);
  return apply_sum(kAddLayer, x.variable(kAddLayer), residual.variable(kAddLayer), &scale,
                   &beta.variable(kAddLayer), scale.shape(), eps);
}

Variable rms_normalization(const VariableOperand& x, const VariableOperand& gamma, double eps) {
  const Variable& scale = gamma.variable(kRms);
  return apply_rows(kRms, x.variable(kRms), &scale, nullptr, scale.shape(), eps)[0];
}

AddNormalizationResult add_rms_normalization(const VariableOperand& x,
                                             const VariableOperand& residual,
                                             const VariableOperand& gamma, double eps) {
  const Variable& scale = gamma.variable(kAddRms);
  return apply_sum(kAddRms, x.variable(kAddRms), residual.variable(kAddRms), &scale, nullptr,
                   scale.shape(), eps);
}

LayerNormalization::LayerNormalization(int64_t size, const LayerNormalizationOptions& options)
    : LayerNormalization(Shape{size}, options) {}

LayerNormalization::LayerNormalization(const Shape& size, const LayerNormalizationOptions& o)
    : size_(checked(kLayer, size, o.eps)),
      eps_(o.eps),
      use_gamma_(o.use_gamma),
      use_beta_(o.use_beta) {
  if (o.use_gamma)
    gamma =
        OwnedParameter(initial_scale(kLayer, "initial_gamma", size, o.dtype, o.initial_gamma, 1));
  if (o.use_beta)
    beta = OwnedParameter(initial_scale(kLayer, "initial_beta", size, o.dtype, o.initial_beta, 0));
}

Variable LayerNormalization::operator()(const VariableOperand& x) const {
  return apply_rows(kLayer, x.variable(kLayer), used_parameter(kLayer, gamma, use_gamma_),
                    used_parameter(kLayer, beta, use_beta_), size_, eps_)[0];
}

AddNormalizationResult LayerNormalization::operator()(const VariableOperand& x,
                                                      const VariableOperand& residual) const {
  return apply_sum(kAddLayer, x.variable(kAddLayer), residual.variable(kAddLayer),
                   used_parameter(kAddLayer, gamma, use_gamma_),
                   used_parameter(kAddLayer, beta, use_beta_), size_, eps_);
}

void LayerNormalization::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  if (gamma.defined()) visitor(prefix + "gamma", gamma);
  if (beta.defined()) visitor(prefix + "beta", beta);
}

RMSNormalization::RMSNormalization(int64_t size, const RMSNormalizationOptions& options)
    : RMSNormalization(Shape{size}, options) {}

RMSNormalization::RMSNormalization(const Shape& size, const RMSNormalizationOptions& o)
    : size_(checked(kRms, size, o.eps)), eps_(o.eps), use_gamma_(o.use_gamma) {
  if (o.use_gamma)
    gamma = OwnedParameter(initial_scale(kRms, "initial_gamma", size, o.dtype, o.initial_gamma, 1));
}

Variable RMSNormalization::operator()(const VariableOperand& x) const {
  return apply_rows(kRms, x.variable(kRms), used_parameter(kRms, gamma, use_gamma_), nullptr, size_,
                    eps_)[0];
}

AddNormalizationResult RMSNormalization::operator()(const VariableOperand& x,
                                                    const VariableOperand& residual) const {
  return apply_sum(kAddRms, x.variable(kAddRms), residual.variable(kAddRms),
                   used_parameter(kAddRms, gamma, use_gamma_), nullptr, size_, eps_);
}

void RMSNormalization::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  if (gamma.defined()) visitor(prefix + "gamma", gamma);
}

}  // namespace catena::functions
