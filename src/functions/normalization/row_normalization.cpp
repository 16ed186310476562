#include "functions/normalization/row_normalization.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/reduction.h"
#include "catena/functions/array.h"
#include "functions/common/advice.h"
#include "functions/common/gradient_target.h"

namespace catena::functions {

RowPlan RowPlan::of_last_axes(const Array& x, const Shape& size, double eps, bool centred) {
  const int64_t numbers = element_count(size);
  int64_t rows = 1;
  for (int i = 0; i < x.ndim() - size.ndim(); ++i) rows *= x.shape()[size_t(i)];
  return {{rows, 1, numbers, 1, 1}, {}, size, eps, centred};
}

RowPlan RowPlan::of_groups(const Array& x, int64_t groups, double eps) {
  const Shape& shape = x.shape();
  RowPlan plan{{shape[0], 1, shape[1], 1, groups}, BatchLayout::of(x, 1), {shape[1]}, eps, true};
  for (size_t i = 2; i < shape.size(); ++i)
    (plan.batch_layout.last ? plan.layout.positions : plan.layout.inner) *= shape[i];
  return plan;
}

namespace {

// Gradients of row normalizations.
class RowNormalizationNode final : public FunctionNode {
 public:
  RowNormalizationNode(const char* label, const RowPlan& plan, const Shape& x_shape,
                       const Array& statistics, bool gamma, bool beta, bool added)
      : label_(label),
        plan_(plan),
        x_shape_(x_shape),
        statistics_(statistics),
        gamma_(gamma ? 1 : -1),
        beta_(beta ? 1 + int(gamma) : -1),
        residual_(added ? 1 + int(gamma) + int(beta) : -1) {}
  std::string label() const override { return label_; }
  bool splits() const override { return false; }  // one call makes all gradients

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output(),
                   gsum = residual_ < 0 ? Variable() : context.grad_output(1);
    if (!gy.defined() && gsum.defined()) return give_x(context, gsum);
    if (!gy.defined()) return;
    if (context.create_graph()) return backward_recorded(context, gy, gsum);
    if (element_count(x_shape_) == 0) return give_zeros(context, *this);
    backward_by_kernel(context, plan_.batch_layout.laid_out(gy.data()),
                       gsum.defined() ? plan_.batch_layout.laid_out(gsum.data()) : Array());
  }

 private:
  GradientTarget target(BackwardContext& context, int place) const {
    if (!wants(context, place)) return {};
    const VariableNode& parameter = *inputs()[size_t(place)];
    return gradient_target(context, place, plan_.channels, parameter.dtype, parameter.device,
                           is_shared(place));
  }
  // Whether the operand is another one as well: one call of the kernel makes all gradients.
  bool is_shared(int place) const {
    for (const int other : {0, gamma_, beta_, residual_}) {
      if (place >= 0 && other >= 0 && other != place &&
          inputs()[size_t(other)] == inputs()[size_t(place)])
        return true;
    }
    return false;
  }

  // What was normalized.
  Variable rows_of(BackwardContext& context) const {
    return residual_ < 0 ? context.input(0) : context.output(1);
  }
  bool needs_x(BackwardContext& context) const {
    return context.needs(0) || wants(context, residual_);
  }
  // To x and the residual.
  void give_x(BackwardContext& context, const Variable& gx) const {
    if (context.needs(0)) context.set_grad(0, gx);
    if (wants(context, residual_)) context.set_grad(residual_, gx);
  }

  void backward_by_kernel(BackwardContext& context, const Array& g, const Array& gsum) const {
    const Array x = plan_.batch_layout.laid_out(rows_of(context).data());
    const bool needs = needs_x(context);
    const Array gx = needs ? plan_.batch_layout.uninitialized(x_shape_, x) : Array();
    // x alone serves the gradient of gamma.
    const Array gamma = gamma_ >= 0 && needs ? context.input(gamma_).data().contiguous() : Array();
    const GradientTarget g_gamma = target(context, gamma_), g_beta = target(context, beta_);
    kernels::row_normalization_grad(
        x.device(),
        {plan_.layout, &x, &g, gamma.defined() ? &gamma : nullptr, &statistics_, plan_.centred,
         gx.defined() ? &gx : nullptr, g_gamma.pointer(), g_beta.pointer(), g_gamma.accumulate,
         g_beta.accumulate, needs && gsum.defined() ? &gsum : nullptr});
    if (needs) give_x(context, Variable::constant(gx));
    g_gamma.give(context, gamma_);
    g_beta.give(context, beta_);
  }

  // The same formulas on variables; the statistics are made anew, as functions of x.
  void backward_recorded(BackwardContext& context, const Variable& gy, const Variable& gsum) const {
    const RowLayout& l = plan_.layout;
    const Dtype own = inputs()[0]->dtype, wide = compute_dtype(own);
    const Shape rows{l.rows(), l.size()};
    const Shape channels{l.samples, l.channels, l.positions * l.inner};
    const Variable g = reshape(cast(gy, wide), channels);
    const Variable inside = centred_rows(cast(rows_of(context), wide), rows);
    const Variable inverse = rsqrt(mean(square(inside), 1, true) + plan_.eps);
    const Variable xhat = inside * inverse;
    if (wants(context, gamma_)) give_parameter(context, gamma_, g * reshape(xhat, channels));
    if (wants(context, beta_)) give_parameter(context, beta_, g);
    if (!needs_x(context)) return;
    const Variable scaled =
        gamma_ < 0 ? g : g * reshape(cast(context.input(gamma_), wide), {1, l.channels, 1});
    const Variable h = reshape(scaled, rows);
    Variable gx = h - xhat * mean(h * xhat, 1, true);
    if (plan_.centred) gx = gx - mean(h, 1, true);
    gx = cast(reshape(inverse * gx, x_shape_), own);
    give_x(context, gsum.defined() ? gx + gsum : gx);
  }

  // The sum over all numbers of each channel.
  void give_parameter(BackwardContext& context, int place, const Variable& terms) const {
    const Variable gradient = reshape(sum(terms, Axes{0, 2}), plan_.channels);
    context.set_grad(place, cast(gradient, inputs()[size_t(place)]->dtype));
  }
  // Rows of x, less their mean if that is taken off.
  Variable centred_rows(const Variable& x, const Shape& rows) const {
    const Variable whole = reshape(x, rows);
    if (!plan_.centred) return whole;
    // The mean, rounded, as a constant takes no gradient, and the mean of what is left is small.
    const Variable near = whole - catena::mean(whole.data(), 1, true);
    return near - mean(near, 1, true);
  }

  const char* label_;
  RowPlan plan_;
  Shape x_shape_;
  Array statistics_;
  int gamma_, beta_, residual_;  // places among the operands; -1: none
};

std::string parameter_advice(const Array& x, const Variable* named, const Shape& channels) {
  const Dtype wide = compute_dtype(x.dtype());
  if (named && is_float(named->dtype()) && named->dtype() != wide)
    return layer_dtype_advice(x, named->data());
  return message("For x of ", x.dtype(), " gamma and beta are expected as ", wide, " ", channels,
                 ".");
}

}  // namespace

void check_row_types(const FunctionCall& call, const RowParameters& parameters,
                     const Shape& channels) {
  const Array& x = call[0].data();
  const auto data_of = [](const Variable* v) { return v ? &v->data() : nullptr; };
  const TypeOf in(x, "x"), gamma(data_of(parameters.gamma), "gamma"),
      beta(data_of(parameters.beta), "beta");
  const Checks checks(call.named(), in, gamma, beta);
  checks.require_float(in);
  for (const TypeOf* t : {&gamma, &beta}) {
    if (t->array == nullptr) continue;
    const Variable* named = t == &gamma ? parameters.gamma : parameters.beta;
    const auto advised = checks.advised([&] { return parameter_advice(x, named, channels); });
    if (named->dtype() != x.dtype()) advised.require(t->dtype() == compute_dtype(x.dtype()));
    advised.require(t->ndim() == channels.ndim());
    for (int i = 0; i < channels.ndim(); ++i) advised.require(t->shape(i) == channels[size_t(i)]);
  }
}

Variables normalize_rows(FunctionCall& call, const RowPlan& plan, const RowParameters& parameters,
                         bool added) {
  const Array x = plan.batch_layout.laid_out(call[0].data());
  const Array y = plan.batch_layout.uninitialized(x.shape(), x);
  const Array residual = added ? plan.batch_layout.laid_out(call[call.size() - 1].data()) : Array();
  const Array sum = added ? plan.batch_layout.uninitialized(x.shape(), x) : Array();
  const Array statistics = Array::uninitialized({(plan.centred ? 3 : 1) * plan.layout.rows()},
                                                compute_dtype(x.dtype()), x.device());
  const auto contiguous = [](const Variable* v) { return v ? v->data().contiguous() : Array(); };
  const auto pointer = [](const Array& a) { return a.defined() ? &a : nullptr; };
  const Array gamma = contiguous(parameters.gamma), beta = contiguous(parameters.beta);
  if (x.size() > 0)
    kernels::row_normalization(
        x.device(), {plan.layout, &x, pointer(gamma), pointer(beta), plan.eps, plan.centred, &y,
                     &statistics, pointer(residual), pointer(sum)});
  const auto make = [&] {
    auto node = make_node<RowNormalizationNode>(call.name(), plan, x.shape(), statistics,
                                                gamma.defined(), beta.defined(), added);
    if (added)
      node->save_output(1, sum);
    else
      node->save_input(0, call[0]);
    if (gamma.defined() &&
        (call[0].requires_grad() || (added && call[call.size() - 1].requires_grad())))
      node->save_input(1, call[1]);
    return node;
  };
  if (added) return call.record(Arrays{y, sum}, make);
  return {call.record(y, make)};
}

void check_eps(const char* layer, double eps) {
  CATENA_CHECK(ValueError, eps >= 0 && std::isfinite(eps), layer,
               ": expected an eps of at least 0, got ", eps);
}

void check_size(const char* layer, const Shape& size) {
  CATENA_CHECK(ValueError, size.ndim() >= 1 && element_count(size) > 0, layer,
               ": expected a size of at least 1, got ", size);
}

const Variable* used_parameter(const char* layer, const OwnedParameter& parameter, bool used) {
  if (!used) return nullptr;
  CATENA_CHECK(ValueError, parameter.defined(), layer,
               ": this layer has no parameters; it was moved from");
  return &parameter.variable();
}

}  // namespace catena::functions
