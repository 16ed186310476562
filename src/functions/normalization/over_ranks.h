// Batch normalization by the statistics of several ranks: what they exchange in the forward and in
// the backward pass, one message each.
#pragma once

#include <functional>
#include <string>

#include "functions/normalization/normalization_node.h"

namespace catena::functions {

// Forward. Collective over the ranks of the exchange; the x of a rank may be empty. ValueError on
// all ranks of a CPU, beginning with label(), where they have fewer than two numbers a channel.
NormalizationResult normalize_over_ranks(const NormalizationPlan& plan,
                                         const NormalizationOperands& operands,
                                         const RunningStatistics& running,
                                         const ExchangePtr& exchange,
                                         const std::function<std::string()>& label, bool recorded);

// Backward, of a call that wants gx: kernels::batch_normalization_grad in two calls, with the sums
// of all ranks.
void normalize_grad_over_ranks(const BatchNormalizationGradCall& call, const Array& count,
                               const StatisticsExchange& exchange);
// The part of a rank whose x, of this type, is empty.
void join_grad_over_ranks(const NormalizationPlan& plan, const Array& x,
                          const StatisticsExchange& exchange);

// For gradients that are recorded: the sum over ranks, and its adjoint with respect to the loss of
// the job. `count` is that of this rank's numbers a channel.
Variable sum_over_exchange(const Variable& x, const ExchangePtr& exchange, double count);
Variable adjoint_sum_over_exchange(const Variable& gy, const ExchangePtr& exchange, double count);

}  // namespace catena::functions
