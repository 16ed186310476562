#include "functions/normalization/over_ranks.h"

#include <algorithm>

#include "functions/common/support.h"

namespace catena::functions {
namespace {

// What is known of this rank's part of the batch.
Array moments_of(const NormalizationPlan& p, const Array& x) {
  const Array moments = Array::uninitialized({moments_size(p.channel_layout.channels)},
                                             compute_dtype(x.dtype()), x.device());
  if (x.size() == 0)
    moments.fill(0);
  else
    kernels::batch_moments(x.device(), {p.channel_layout, &x, &moments});
  return moments;
}

// On a GPU looking would wait for it; there the statistics become NaN.
void check_count(const Array& moments, int64_t channels,
                 const std::function<std::string()>& label) {
  if (!moments.device().is_cpu()) return;
  double count = 0;
  for (int64_t part = 0; part < moments.shape()[0]; ++part)
    count += double(kMomentsCountUnit) * moments(part, 3 * channels).item<double>() +
             moments(part, 3 * channels + 1).item<double>();
  CATENA_CHECK(ValueError, count >= 2, label(), ": the batches of all ranks have ", count,
               " values a channel, which have no variance; use at least two samples, or given "
               "statistics (a layer in test state)");
}

BatchStatistics merge(const NormalizationPlan& p, const Array& x, const Array& moments,
                      const RunningStatistics& running) {
  const BatchStatistics s{p.channel_array(x), p.channel_array(x), p.channel_array(x),
                          Array::uninitialized({1}, compute_dtype(x.dtype()), x.device())};
  if (running.updates) catena::add(*running.updates, 1, *running.updates);
  kernels::merge_moments(x.device(),
                         {&moments, p.eps, &s.mean, &s.mean_rest, &s.inverse_deviation, &s.count,
                          running.mean, running.var, running.decay, running.updates});
  for (const Array* a : {running.mean, running.var})
    if (a != nullptr) a->note_write();
  return s;
}

// The weight of this rank's gradients in the loss of the job, up to a factor that all ranks share.
double weight_of(const StatisticsExchange& exchange, double count) {
  return exchange.weighs_by_samples() ? count : 1;
}

// The linear map of sums over ranks, or its adjoint. With the weights w of the ranks in the loss of
// the job, and gradients that count with them, it is gx = sum(w * gy) / w.
struct SumOverExchange {
  static constexpr const char* kName = "SumOverRanks";
  ExchangePtr exchange;
  double weight;
  bool transposed;

  Array forward(const Array& x) const { return transposed ? adjoint_sum(x) : plain_sum(x); }
  Array adjoint(const Array& x) const { return transposed ? plain_sum(x) : adjoint_sum(x); }

 private:
  Array plain_sum(const Array& x) const {
    const Array y = x.copy();
    exchange->sum(y);
    return y;
  }
  Array adjoint_sum(const Array& x) const {
    if (!exchange->weighs_by_samples()) return plain_sum(x);
    const Array y = x * weight;
    exchange->sum(y);
    return y / std::max(weight, 1.0);  // what a rank without samples gets goes nowhere
  }
};

Variable apply_exchange(const Variable& x, const SumOverExchange& map) {
  FunctionCall call(SumOverExchange::kName, Autocast::kNone, x);
  return linear_map(call, map);
}

Array sums_like(const Array& x, int64_t channels) {
  return Array::uninitialized({2 * channels}, compute_dtype(x.dtype()), x.device());
}

}  // namespace

NormalizationResult normalize_over_ranks(const NormalizationPlan& p, const NormalizationOperands& o,
                                         const RunningStatistics& running,
                                         const ExchangePtr& exchange,
                                         const std::function<std::string()>& label, bool recorded) {
  const Array x = p.batch_layout.laid_out(o.x.data());
  const Array moments = exchange->gather(moments_of(p, x));
  check_count(moments, p.channel_layout.channels, label);
  NormalizationResult made{p.batch_array(x), merge(p, x, moments, running), {}, exchange};
  if (x.size() == 0) return made;
  const Array residual = o.residual ? p.batch_layout.laid_out(o.residual->data()) : Array();
  const ChannelOperand gamma(o.gamma), beta(o.beta);
  // Without a residual the backward pass follows the relu from x.
  const bool keeps = p.relu && o.residual && recorded;
  kernels::fixed_batch_normalization(
      x.device(),
      {p.channel_layout, &x, gamma.pointer(), beta.pointer(), o.residual ? &residual : nullptr,
       &made.own.mean, nullptr, p.eps, p.relu, &made.y, keeps ? &made.kept : nullptr,
       &made.own.inverse_deviation, &made.own.mean_rest});
  return made;
}

void normalize_grad_over_ranks(const BatchNormalizationGradCall& call, const Array& count,
                               const StatisticsExchange& exchange) {
  const Array sums = sums_like(*call.x, call.layout.channels);
  BatchNormalizationGradCall first = call, second = call;
  first.gx = first.g_residual = nullptr;
  first.sums = &sums;
  first.sums_weight = second.sums_weight = weight_of(exchange, double(call.layout.count()));
  kernels::batch_normalization_grad(call.x->device(), first);
  exchange.sum(sums);
  second.g_gamma = second.g_beta = nullptr;
  second.given_sums = &sums;
  second.given_count = &count;
  kernels::batch_normalization_grad(call.x->device(), second);
}

void join_grad_over_ranks(const NormalizationPlan& plan, const Array& x,
                          const StatisticsExchange& exchange) {
  const Array sums = sums_like(x, plan.channel_layout.channels);
  sums.fill(0);
  exchange.sum(sums);
}

Variable sum_over_exchange(const Variable& x, const ExchangePtr& exchange, double count) {
  return apply_exchange(x, {exchange, weight_of(*exchange, count), false});
}

Variable adjoint_sum_over_exchange(const Variable& gy, const ExchangePtr& exchange, double count) {
  return apply_exchange(gy, {exchange, weight_of(*exchange, count), true});
}

}  // namespace catena::functions
