// Settings of one batch normalization, decided once for its forward and backward passes, and its
// record in the graph.
#pragma once

#include <memory>

#include "catena/array/array.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/persistent.h"
#include "catena/autograd/variable.h"
#include "catena/functions/normalization/statistics_exchange.h"
#include "catena/kernels/normalization.h"
#include "functions/common/layout.h"

namespace catena::functions {

// Operands of one call; what is absent is null.
struct NormalizationOperands {
  Variable x;
  const Variable* gamma = nullptr;
  const Variable* beta = nullptr;
  const Variable* residual = nullptr;
  const Variable* mean = nullptr;  // given statistics
  const Variable* var = nullptr;
  const Persistent* average =
      nullptr;  // of the layer that is called; gives errors the layer's path
};

using ExchangePtr = std::shared_ptr<const StatisticsExchange>;

// Averages that a call moves.
struct RunningStatistics {
  const Array* mean = nullptr;
  const Array* var = nullptr;
  double decay = 0;
  const Array* updates = nullptr;  // counted, and then used instead of the decay
};

struct BatchStatistics {
  Array mean, inverse_deviation;
  Array mean_rest;  // as in catena/kernels/normalization.h; empty of given statistics
  Array count;      // (1) of several ranks: the numbers of a channel on all of them
};

// What the forward pass leaves for the backward pass.
struct NormalizationResult {
  Array y;
  BatchStatistics own;  // of the batch; empty if the operands have given ones
  Kept<BatchNormalizationGradCall> kept;
  ExchangePtr exchange;  // null unless the statistics are those of several ranks
};

struct NormalizationPlan {
  NormalizationPlan(const Array& x, const Shape& channels, double eps, bool relu);

  // Axes 1 to channel_axes() of x are the channels.
  int channel_axes() const { return channels.ndim(); }
  Axes summed_axes() const;
  // The shape in which a channel array broadcasts to x.
  Shape broadcast_shape() const;
  // Uninitialised, of the shape, layout, dtype and device of x.
  Array batch_array(const Array& x) const { return batch_layout.uninitialized(x_shape, x); }
  // Uninitialised, one number for each channel, of the dtype of the statistics of x.
  Array channel_array(const Array& x) const;

  Shape x_shape, channels;
  BatchLayout batch_layout;  // of x, y and their gradients
  ChannelLayout channel_layout;
  bool relu;
  double eps;
};

// Channel operands as kernels take them.
struct ChannelOperand {
  explicit ChannelOperand(const Variable* v) : array(v ? v->data().contiguous() : Array()) {}
  const Array* pointer() const { return array.defined() ? &array : nullptr; }
  Array array;
};

// Where the operands are among those of the call, x first; -1 where there is none.
struct NormalizationPlaces {
  explicit NormalizationPlaces(const NormalizationOperands& operands);
  int gamma = -1, beta = -1, residual = -1, mean = -1, var = -1;
};

// y as a variable; ends the call.
Variable normalization_variable(FunctionCall& call, const NormalizationPlan& plan,
                                const NormalizationPlaces& at, const NormalizationResult& result);

}  // namespace catena::functions
