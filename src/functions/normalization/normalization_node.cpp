#include "functions/normalization/normalization_node.h"

#include "catena/functions/array.h"
#include "functions/common/gradient_target.h"
#include "functions/common/support.h"
#include "functions/normalization/over_ranks.h"

namespace catena::functions {

NormalizationPlan::NormalizationPlan(const Array& x, const Shape& channels_, double eps_,
                                     bool relu_)
    : x_shape(x.shape()),
      channels(channels_),
      batch_layout(BatchLayout::of(x, channels_.ndim())),
      channel_layout{1, 1, 1},
      relu(relu_),
      eps(eps_) {
  for (const int64_t extent : channels) channel_layout.channels *= extent;
  channel_layout.outer = x.shape()[0];
  for (int i = 1 + channel_axes(); i < x.ndim(); ++i)
    (batch_layout.last ? channel_layout.outer : channel_layout.inner) *= x.shape()[size_t(i)];
}

Axes NormalizationPlan::summed_axes() const {
  Axes axes{0};
  for (int i = 1 + channel_axes(); i < x_shape.ndim(); ++i) axes.push_back(i);
  return axes;
}

Shape NormalizationPlan::broadcast_shape() const {
  Shape shape(size_t(x_shape.ndim()), 1);
  for (int i = 0; i < channel_axes(); ++i) shape[size_t(i + 1)] = channels[size_t(i)];
  return shape;
}

Array NormalizationPlan::channel_array(const Array& x) const {
  return Array::uninitialized(channels, compute_dtype(x.dtype()), x.device());
}

namespace {

using Places = NormalizationPlaces;

// Whether a relu took y from x alone, so that kernels may compute again where it let y through.
bool relu_of_x(const NormalizationPlan& plan, const Places& at) {
  return plan.relu && at.residual < 0 && at.mean < 0;
}

// Gradients of a batch normalization. Its own statistics are kept; given ones (`fixed`) are inputs.
class BatchNormalizationNode final : public FunctionNode {
 public:
  BatchNormalizationNode(const NormalizationPlan& plan, const Places& places,
                         const NormalizationResult& result)
      : plan_(plan),
        at_(places),
        own_(result.own),
        kept_(result.kept),
        exchange_(result.exchange) {}
  std::string label() const override {
    return fixed() ? "FixedBatchNormalization" : "BatchNormalization";
  }
  bool splits() const override { return false; }  // one kernel makes all gradients

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.create_graph()) return backward_recorded(context, gy);
    if (element_count(plan_.x_shape) == 0) {
      if (exchange_ && context.needs(0))
        join_grad_over_ranks(plan_, context.input(0).data(), *exchange_);
      return give_zeros(context, *this);
    }
    backward_by_kernel(context, plan_.batch_layout.laid_out(gy.data()));
  }

 private:
  bool fixed() const { return at_.mean >= 0; }
  GradientTarget target(BackwardContext& context, int place, const Array& x, bool shared) const {
    return gradient_target(context, place, plan_.channels, compute_dtype(x.dtype()), x.device(),
                           shared);
  }

  void backward_by_kernel(BackwardContext& context, const Array& g) const {
    const Array x = plan_.batch_layout.laid_out(context.input(0).data());
    const bool wants_statistics = wants(context, at_.mean) || wants(context, at_.var);
    // The kernel writes both at once, so that one parameter as gamma and beta needs two places.
    const bool shared = wants(context, at_.gamma) && wants(context, at_.beta) &&
                        inputs()[size_t(at_.gamma)] == inputs()[size_t(at_.beta)];
    // The gradients of given statistics are made of those of gamma and beta.
    const auto target_of = [&](int place, bool own) {
      return wants_statistics ? GradientTarget{plan_.channel_array(x)}
                              : target(context, place, x, own);
    };
    const GradientTarget g_gamma = target_of(at_.gamma, false),
                         g_beta = target_of(at_.beta, shared);
    // Kernels that have kept a mask do not read y, but it is an error if y was written since.
    const Array y = plan_.relu ? context.output().data() : Array();
    const bool masked = plan_.relu && wants(context, at_.residual);
    const Array gx = context.needs(0) || masked ? plan_.batch_array(x) : Array();
    const Array g_residual = masked ? plan_.batch_array(x) : Array();
    const Array gamma = channel_operand(context, at_.gamma),
                beta = relu_of_x(plan_, at_) ? channel_operand(context, at_.beta) : Array();
    const BatchStatistics s = statistics(context);
    const auto pointer = [](const Array& a) { return a.defined() ? &a : nullptr; };
    const BatchNormalizationGradCall call{plan_.channel_layout,
                                          &x,
                                          &g,
                                          pointer(y),
                                          pointer(gamma),
                                          &s.mean,
                                          &s.inverse_deviation,
                                          fixed(),
                                          pointer(gx),
                                          pointer(g_residual),
                                          g_gamma.pointer(),
                                          g_beta.pointer(),
                                          g_gamma.accumulate,
                                          g_beta.accumulate,
                                          &kept_,
                                          relu_of_x(plan_, at_),
                                          pointer(beta),
                                          pointer(s.mean_rest)};
    // Without a gradient of x the sums of this rank are enough.
    if (exchange_ && context.needs(0))
      normalize_grad_over_ranks(call, s.count, *exchange_);
    else
      kernels::batch_normalization_grad(x.device(), call);
    if (context.needs(0)) context.set_grad(0, Variable::constant(gx));
    if (wants(context, at_.residual))
      context.set_grad(at_.residual, Variable::constant(masked ? g_residual : g));
    if (wants_statistics) give_statistics(context, s, gamma, g_gamma.array, g_beta.array);
    if (wants(context, at_.gamma)) g_gamma.give(context, at_.gamma);
    if (wants(context, at_.beta)) g_beta.give(context, at_.beta);
  }

  static Array channel_operand(BackwardContext& context, int place) {
    return place >= 0 ? context.input(place).data().contiguous() : Array();
  }
  BatchStatistics statistics(BackwardContext& context) const {
    if (!fixed()) return own_;
    const Array var = context.input(at_.var).data();
    return {context.input(at_.mean).data().contiguous(),
            (1 / catena::sqrt(var + plan_.eps)).contiguous(),
            {},
            {}};
  }
  void give_statistics(BackwardContext& context, const BatchStatistics& s, const Array& gamma,
                       const Array& g_gamma, const Array& g_beta) const {
    const Array factor = gamma.defined() ? gamma * s.inverse_deviation : s.inverse_deviation;
    if (wants(context, at_.mean))
      context.set_grad(at_.mean, Variable::constant(-(factor * g_beta)));
    if (wants(context, at_.var))
      context.set_grad(at_.var, Variable::constant(factor * s.inverse_deviation * g_gamma * -0.5));
  }

  // The same formulas on variables; the statistics of the batch are made anew, as functions of x.
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    const Variable masked = plan_.relu ? relu_grad(gy, context.output()) : gy;
    const Dtype own = inputs()[0]->dtype, wide = compute_dtype(own);
    const Variable g = cast(masked, wide);
    const Axes axes = plan_.summed_axes();
    const Shape kept = plan_.broadcast_shape();
    const auto channel = [&](int place) { return reshape(context.input(place), kept); };
    // The mean, rounded, as a constant takes no gradient, and the mean of what is left is small.
    const Variable whole = cast(context.input(0), wide);
    const Variable x = fixed() ? whole : whole - own_.mean.reshape(kept);
    const Variable mean = fixed() ? channel(at_.mean) : batch_mean(x);
    const Variable centred = x - mean;
    const Variable var = fixed() ? channel(at_.var) : batch_mean(square(centred));
    const Variable inverse = rsqrt(var + plan_.eps), xhat = centred * inverse;
    const Variable factor = at_.gamma >= 0 ? channel(at_.gamma) * inverse : inverse;
    const Variable g_beta = sum(g, axes, true), g_gamma = sum(g * xhat, axes, true);
    const auto give_channel = [&](int place, const Variable& value) {
      if (wants(context, place)) context.set_grad(place, reshape(value, plan_.channels));
    };
    give_channel(at_.gamma, g_gamma);
    give_channel(at_.beta, g_beta);
    if (fixed()) {
      give_channel(at_.mean, -(factor * g_beta));
      give_channel(at_.var, factor * inverse * g_gamma * -0.5);
    }
    if (wants(context, at_.residual)) context.set_grad(at_.residual, masked);
    if (!context.needs(0)) return;
    const Variable gx =
        fixed() ? factor * g : factor * (g - (batch_share(g_beta) + xhat * batch_share(g_gamma)));
    context.set_grad(0, cast(gx, own));
  }

  // The mean of each channel over the whole batch, which several ranks may have.
  Variable batch_mean(const Variable& x) const {
    const Axes axes = plan_.summed_axes();
    if (!exchange_) return functions::mean(x, axes, true);
    return sum_over_exchange(sum(x, axes, true), exchange_, own_count()) / own_.count.reshape({});
  }
  // The adjoint of it, of which a batch of this rank alone has sums.
  Variable batch_share(const Variable& sums) const {
    if (!exchange_) return sums / own_count();
    return adjoint_sum_over_exchange(sums, exchange_, own_count()) / own_.count.reshape({});
  }
  double own_count() const { return double(plan_.channel_layout.count()); }

  NormalizationPlan plan_;
  Places at_;
  BatchStatistics own_;
  Kept<BatchNormalizationGradCall> kept_;
  ExchangePtr exchange_;
};

}  // namespace

NormalizationPlaces::NormalizationPlaces(const NormalizationOperands& o) {
  int next = 1;
  const auto place = [&](const Variable* operand, int& at) {
    if (operand) at = next++;
  };
  place(o.gamma, gamma);
  place(o.beta, beta);
  place(o.residual, residual);
  place(o.mean, mean);
  place(o.var, var);
}

Variable normalization_variable(FunctionCall& call, const NormalizationPlan& plan, const Places& at,
                                const NormalizationResult& result) {
  return call.record(result.y, [&] {
    auto node = make_node<BatchNormalizationNode>(plan, at, result);
    for (const int i : {0, at.gamma, relu_of_x(plan, at) ? at.beta : -1, at.mean, at.var})
      if (i >= 0) node->save_input(i, call[static_cast<size_t>(i)]);
    if (plan.relu) node->save_output(0, result.y);
    return node;
  });
}

}  // namespace catena::functions
