// Batch normalization, as functions and as a layer (S. Ioffe and C. Szegedy, Batch Normalization:
// Accelerating Deep Network Training by Reducing Internal Covariate Shift, ICML 2015).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "catena/array/arguments.h"
#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"
#include "catena/functions/initializers.h"
#include "catena/functions/normalization/statistics_exchange.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// How batch_normalization computes.
struct NormalizationOptions {
  double eps = 2e-5;  // at least 0
  // Averages over batches, of gamma's shape and on x's device, contiguous; both or none. A call
  // moves them in place: average = decay * average + (1 - decay) * statistic of this batch. The
  // variance that goes into running_var is the unbiased one (divided by m - 1).
  OptionalArray running_mean = {}, running_var = {};
  double decay = 0.9;  // of [0, 1]
  // y = relu(normalized + residual) in the same kernel; both are optional. The residual has x's
  // shape, dtype and device.
  bool relu = false;
  OptionalVariable residual = {};
};

// y = (x - mean) / sqrt(var + eps) * gamma + beta for each channel, with the mean and the (biased)
// variance of this batch over every axis but the channels'. x: (n, channels, ...), of any floating
// dtype; gamma, beta: (channels). They may have several axes, (c, h) for x of (n, c, h, ...): then
// each of c * h positions is a channel. gamma, beta and running statistics are float64 where x is,
// else float32; gamma and beta of 16-bit x may be of x's dtype.
//
// Both memory layouts are first-class: where the channels of x are last in memory, so are those of
// the result. Statistics are made in float32 or wider, without loss where the mean is large beside
// the deviation. Differentiable any number of times. On a GPU everything, the running statistics
// included, is enqueued on the current stream and repeated by the replays of a captured graph.
//
// InvalidType for operands that do not fit; ValueError where a channel has fewer than two values,
// which have no variance, and for options that make no sense.
Variable batch_normalization(const VariableOperand& x, const VariableOperand& gamma,
                             const VariableOperand& beta, const NormalizationOptions& options = {});

// How fixed_batch_normalization computes; the fields mean what they mean in NormalizationOptions.
struct FixedBatchNormalizationOptions {
  double eps = 2e-5;
  bool relu = false;
  OptionalVariable residual = {};
};

// The same with given mean and var, (channels), of a dtype that gamma may have, as in test state.
// Gradients flow to them, too. x may be empty.
Variable fixed_batch_normalization(const VariableOperand& x, const VariableOperand& gamma,
                                   const VariableOperand& beta, const VariableOperand& mean,
                                   const VariableOperand& var,
                                   const FixedBatchNormalizationOptions& options = {});

// The numbers, parts, dtype and initial values of a BatchNormalization.
struct BatchNormalizationOptions {
  double decay = 0.9;  // of the averages, see NormalizationOptions
  double eps = 2e-5;
  Dtype dtype = Dtype::kFloat32;    // of gamma and beta; averages: float64 or float32
  bool use_gamma = true;            // false: no gamma, as if it were 1
  bool use_beta = true;             // false: no beta, as if it were 0
  InitialValue initial_gamma = {};  // (channels) instead of ones
  InitialValue initial_beta = {};   // (channels) instead of zeros
  // Of avg_var, (channels) instead of ones, as today's frameworks start; Chainer 1.x started at 0.
  // A start weighs decay^n after n batches.
  InitialValue initial_avg_var = {};
};

// Batch normalization with learned gamma and beta and with averages of the statistics, on the
// current device. In train state it normalizes by the statistics of the batch and moves the
// averages, in test state by the averages; the last argument of a call overrides the state:
//   struct Block : catena::FunctionSet {
//     F::Convolution2D conv{3, 16, 3, {.pad = 1, .nobias = true}};
//     F::BatchNormalization bn{16};
//     CATENA_FUNCTIONS(conv, bn)
//     Variable operator()(const Variable& x) { return bn.relu(conv(x)); }
//   };
//
// The averages are persistent arrays: they move, are copied, saved and loaded with the model. Over
// ranks each has its own until parallel::average_persistents, unless the layer shares statistics.
class BatchNormalization : public Parameterized {
 public:
  // `size` is the number of channels, or the extents of several channel axes. ValueError for
  // extents below 1 and options out of range, ShapeError for initial arrays of another shape,
  // DtypeError unless dtype is floating.
  explicit BatchNormalization(int64_t size, const BatchNormalizationOptions& options = {});
  explicit BatchNormalization(const Shape& size, const BatchNormalizationOptions& options = {});

  // See batch_normalization for x and errors.
  Variable operator()(const VariableOperand& x, std::optional<YesNo> train = {}) const;
  // relu of it, and relu of it plus `residual`, each without a further kernel.
  Variable relu(const VariableOperand& x, std::optional<YesNo> train = {}) const;
  Variable add_relu(const VariableOperand& x, const VariableOperand& residual,
                    std::optional<YesNo> train = {}) const;

  // Normalizes by the statistics of the batch, and makes the averages the means over all batches
  // since start_finetuning(): the statistics of a whole data set, once training is over.
  Variable finetune(const VariableOperand& x) const;
  // The next finetune() begins anew.
  void start_finetuning() const;

  // From now on calls in train state normalize by the statistics of the batches of all ranks, which
  // must then make the same calls; a rank's batch may be empty. The averages, equal on all ranks,
  // become new arrays that are declared so (OverRanks::kEqual): call it before an optimizer or a
  // checkpoint takes the model. Copies of the layer share as well. Null: alone again. See
  // parallel::synchronize_normalization, which calls it for the layers of a model.
  void share_statistics(std::shared_ptr<const StatisticsExchange> exchange);
  // What was given there; null: none.
  const std::shared_ptr<const StatisticsExchange>& exchange() const { return exchange_; }

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_persistents(const PersistentVisitor& visitor, const std::string& prefix = "") override;
  // The numbers of the layer.
  double decay() const { return decay_; }
  double eps() const { return eps_; }

  OwnedParameter gamma;               // (channels); undefined without use_gamma
  OwnedParameter beta;                // (channels); undefined without use_beta
  OwnedPersistent avg_mean, avg_var;  // (channels), at first 0 and 1
  OwnedPersistent N;                  // int64 of shape (): batches since start_finetuning()

 private:
  struct Fusion;
  Variable apply(const VariableOperand& x, bool train, bool finetune, const Fusion& fusion) const;
  double decay_, eps_;
  std::shared_ptr<const StatisticsExchange> exchange_;
};

}  // namespace catena::functions
