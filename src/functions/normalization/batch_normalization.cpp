#include "catena/functions/normalization/batch_normalization.h"

#include "catena/functions/array/cast.h"
#include "catena/kernels/normalization.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"
#include "functions/normalization/normalization_node.h"
#include "functions/normalization/over_ranks.h"
#include "functions/normalization/row_normalization.h"

namespace catena::functions {
namespace {

constexpr const char *kBatch = "BatchNormalization", *kFixed = "FixedBatchNormalization";

// Checks ----------------------------------------------------------------------------------------

// What channel operands share: the shape (channels), and the dtype of statistics.
struct ChannelType {
  const Shape& channels;
  Dtype dtype;
  auto extent(int i) const {
    return shown(channels[size_t(i)], [i] { return message("channels[", i, "]"); });
  }
};

// "2, 3"
std::string joined(const Shape& extents) {
  std::string text;
  for (const int64_t extent : extents) text += message(text.empty() ? "" : ", ", extent);
  return text;
}

// "3", of several axes "(2, 3)".
std::string size_text(const Shape& channels) {
  return channels.ndim() == 1 ? joined(channels) : to_string(channels);
}

// Names the layer for x, if x has axes for its channels.
std::string other_layer(const Array& x, const Shape& channels) {
  if (x.ndim() <= channels.ndim()) return {};
  const Shape own(x.shape().begin() + 1, x.shape().begin() + 1 + channels.ndim());
  const char *open = own.ndim() == 1 ? "(" : "({", *close = own.ndim() == 1 ? ")" : "})";
  return message(", for which the layer is BatchNormalization", open, joined(own), close);
}

std::string input_advice(const Array& x, const Shape& channels) {
  return message("The layer takes (n, ", joined(channels), ", ...), n samples of ",
                 size_text(channels), " channels; the input has shape ", x.shape(),
                 other_layer(x, channels), ".");
}

std::string operand_advice(const Array& x, const Shape& channels, Dtype dtype) {
  return message("For x of ", x.dtype(), " with ", size_text(channels),
                 " channels, gamma, beta, mean and var are expected as ", dtype, " ", channels,
                 ".");
}

std::string residual_advice(const Array& x) {
  return message("The residual is added to the normalized x: it has the shape and dtype of x, ",
                 x.dtype(), " ", x.shape(), ".");
}

// "BatchNormalization 'block/bn'", if a model has listed the layer.
std::string label_of(const char* kind, const NormalizationOperands& o) {
  if (const Variable* named = o.gamma ? o.gamma : o.beta) return layer_label(kind, *named);
  return layer_label(kind, o.average ? o.average->path() : std::string());
}

const Array* data_of(const Variable* v) { return v ? &v->data() : nullptr; }

struct OperandTypes {
  explicit OperandTypes(const NormalizationOperands& o)
      : x(o.x.data(), "x"),
        gamma(data_of(o.gamma), "gamma"),
        beta(data_of(o.beta), "beta"),
        mean(data_of(o.mean), "mean"),
        var(data_of(o.var), "var"),
        residual(data_of(o.residual), "residual") {}
  // Calls visit(operand) for those with a number a channel that there are.
  template <class Visit>
  void each_channel_operand(Visit visit) const {
    for (const TypeOf* operand : {&gamma, &beta, &mean, &var})
      if (operand->array) visit(*operand);
  }
  TypeOf x, gamma, beta, mean, var, residual;
};

template <class Checks>
void require_dtypes(const Checks& checks, const OperandTypes& types, const ChannelType& type) {
  checks.require_float(types.x);
  types.each_channel_operand(
      [&](const TypeOf& operand) { checks.require(operand.dtype() == type.dtype); });
}

// The axes of `t` from `first` on are the channels.
template <class Checks>
void require_channels(const Checks& checks, const TypeOf& t, int first, const ChannelType& type) {
  for (int i = 0; i < type.channels.ndim(); ++i)
    checks.require(t.shape(first + i) == type.extent(i));
}

template <class Checks>
void require_residual(const Checks& checks, const OperandTypes& types) {
  const TypeOf &residual = types.residual, &x = types.x;
  checks.require(residual.dtype() == x.dtype(), residual.ndim() == x.ndim());
  for (int i = 0; i < x.array->ndim(); ++i) checks.require(residual.shape(i) == x.shape(i));
}

std::string dtype_advice(const NormalizationOperands& o, const ChannelType& type) {
  const Variable* named = o.gamma ? o.gamma : o.beta;
  if (named && is_float(named->dtype()) && named->dtype() != type.dtype)
    return layer_dtype_advice(o.x.data(), named->data());
  if (!is_float(o.x.dtype())) return {};
  return operand_advice(o.x.data(), type.channels, type.dtype);
}

void check_types(const char* who, const NormalizationOperands& o, const Shape& channels) {
  const Array& input = o.x.data();
  const ChannelType type{channels, compute_dtype(input.dtype())};
  const OperandTypes t(o);
  const Checks checks([&] { return label_of(who, o); }, t.x, t.gamma, t.beta, t.mean, t.var,
                      t.residual);
  require_dtypes(checks.advised([&] { return dtype_advice(o, type); }), t, type);

  const auto of_x = checks.advised([&] { return input_advice(input, channels); });
  of_x.require(t.x.ndim() >= channels.ndim() + 1);
  require_channels(of_x, t.x, 1, type);

  const auto of_operand =
      checks.advised([&] { return operand_advice(input, channels, type.dtype); });
  t.each_channel_operand([&](const TypeOf& operand) {
    of_operand.require(operand.ndim() == channels.ndim());
    require_channels(of_operand, operand, 0, type);
  });
  if (o.residual) require_residual(checks.advised([&] { return residual_advice(input); }), t);
}

void check_variance(const char* who, const NormalizationOperands& o, const NormalizationPlan& p) {
  if (o.x.size() > 0 && p.channel_layout.count() > 1) [[likely]]
    return;
  const bool one_sample = o.x.shape()[0] == 1;
  fail<ValueError>(label_of(who, o), ": x of shape ", o.x.shape(), " has ",
                   o.x.size() == 0 ? "no values" : "one value a channel",
                   ", which has no variance; use at least two samples, or given statistics "
                   "(fixed_batch_normalization, a layer in test state)",
                   one_sample ? ". If the last batch of an epoch has one sample, drop the last "
                                "batch (drop_last)."
                              : "");
}

void check_devices(const char* who, const NormalizationOperands& o) {
  for (const Variable* v : {o.gamma, o.beta, o.residual, o.mean, o.var}) {
    if (v == nullptr || v->device() == o.x.device()) continue;
    check_same_device(label_of(who, o).c_str(), o.x.data(), v->data());
  }
}

void check_decay(const char* who, double decay) {
  CATENA_CHECK(ValueError, decay >= 0 && decay <= 1, who, ": expected a decay of [0, 1], got ",
               decay);
}

void check_running(const Array& x, const Shape& channels, const RunningStatistics& running) {
  constexpr const char* kWho = kBatch;
  CATENA_CHECK(ValueError, bool(running.mean) == bool(running.var), kWho, ": got running_",
               running.mean ? "mean without running_var" : "var without running_mean",
               "; give both, or none");
  if (running.mean == nullptr) return;
  check_decay(kWho, running.decay);
  const Dtype dtype = compute_dtype(x.dtype());
  for (const Array* a : {running.mean, running.var}) {
    const char* name = a == running.mean ? "running_mean" : "running_var";
    CATENA_CHECK(ShapeError, a->shape() == channels, kWho, ": ", name, " has shape ", a->shape(),
                 ", expected that of gamma, ", channels);
    CATENA_CHECK(DtypeError, a->dtype() == dtype, kWho, ": ", name, " is ", a->dtype(),
                 ", expected ", dtype, " for x of ", x.dtype());
    CATENA_CHECK(ValueError, a->is_contiguous(), kWho, ": ", name,
                 " is a view with gaps, which cannot be updated in place; use an array of its own");
    check_same_device(kWho, x, *a);
  }
}

void check_exchange(const char* who, const NormalizationOperands& o,
                    const StatisticsExchange& exchange) {
  exchange.check(o.x.data(), label_of(who, o));
}

// Kernels on arrays -----------------------------------------------------------------------------

// By the statistics of x.
NormalizationResult normalize(const NormalizationPlan& p, const NormalizationOperands& o,
                              const RunningStatistics& running, bool recorded) {
  const Array x = p.batch_layout.laid_out(o.x.data());
  const Array residual = o.residual ? p.batch_layout.laid_out(o.residual->data()) : Array();
  const ChannelOperand gamma(o.gamma), beta(o.beta);
  NormalizationResult made{
      p.batch_array(x), {p.channel_array(x), p.channel_array(x), p.channel_array(x), {}}, {}, {}};
  if (running.updates) catena::add(*running.updates, 1, *running.updates);
  kernels::batch_normalization(
      x.device(),
      {p.channel_layout, &x, gamma.pointer(), beta.pointer(), o.residual ? &residual : nullptr,
       p.eps, p.relu, &made.y, &made.own.mean, &made.own.inverse_deviation, running.mean,
       running.var, running.decay, running.updates, p.relu && recorded ? &made.kept : nullptr,
       &made.own.mean_rest});
  for (const Array* a : {running.mean, running.var})
    if (a != nullptr) a->note_write();
  return made;
}

NormalizationResult normalize_fixed(const NormalizationPlan& p, const NormalizationOperands& o,
                                    bool recorded) {
  const Array x = p.batch_layout.laid_out(o.x.data());
  NormalizationResult made{p.batch_array(x), {}, {}, {}};
  if (x.size() == 0) return made;
  const Array residual = o.residual ? p.batch_layout.laid_out(o.residual->data()) : Array();
  const ChannelOperand gamma(o.gamma), beta(o.beta), mean(o.mean), var(o.var);
  kernels::fixed_batch_normalization(
      x.device(), {p.channel_layout, &x, gamma.pointer(), beta.pointer(),
                   o.residual ? &residual : nullptr, mean.pointer(), var.pointer(), p.eps, p.relu,
                   &made.y, p.relu && recorded ? &made.kept : nullptr});
  return made;
}

// 16-bit channel operands go to kernels in float32.
struct WideOperand {
  WideOperand(const Variable*& operand, Dtype x) {
    if (operand == nullptr || operand->dtype() != x || x == compute_dtype(x)) return;
    wide = cast(*operand, compute_dtype(x));
    operand = &wide;
  }
  Variable wide;
};

// `exchange` may be null.
Variable apply_batch(NormalizationOperands o, const Shape& channels, double eps, bool relu,
                     const RunningStatistics& running, const ExchangePtr& exchange = {}) {
  constexpr const char* kWho = kBatch;
  check_eps(kWho, eps);
  const WideOperand gamma(o.gamma, o.x.dtype()), beta(o.beta, o.x.dtype());
  FunctionCall call(kWho, Autocast::kNone, o.x, o.gamma, o.beta, o.residual);
  check_types(kWho, o, channels);
  check_devices(kWho, o);
  check_running(o.x.data(), channels, running);
  const NormalizationPlan plan(o.x.data(), channels, eps, relu);
  const RunningStatistics moved = is_repeated_forward() ? RunningStatistics() : running;
  if (exchange && exchange->ranks() > 1) {
    check_exchange(kWho, o, *exchange);
    return normalization_variable(
        call, plan, NormalizationPlaces(o),
        normalize_over_ranks(
            plan, o, moved, exchange, [&] { return label_of(kWho, o); }, call.is_recorded()));
  }
  check_variance(kWho, o, plan);
  return normalization_variable(call, plan, NormalizationPlaces(o),
                                normalize(plan, o, moved, call.is_recorded()));
}

Variable apply_fixed(NormalizationOperands o, const Shape& channels, double eps, bool relu) {
  constexpr const char* kWho = kFixed;
  check_eps(kWho, eps);
  const WideOperand gamma(o.gamma, o.x.dtype()), beta(o.beta, o.x.dtype()),
      mean(o.mean, o.x.dtype()), var(o.var, o.x.dtype());
  FunctionCall call(kWho, Autocast::kNone, o.x, o.gamma, o.beta, o.residual, o.mean, o.var);
  check_types(kWho, o, channels);
  check_devices(kWho, o);
  const NormalizationPlan plan(o.x.data(), channels, eps, relu);
  return normalization_variable(call, plan, NormalizationPlaces(o),
                                normalize_fixed(plan, o, call.is_recorded()));
}

}  // namespace

Variable batch_normalization(const VariableOperand& x, const VariableOperand& gamma,
                             const VariableOperand& beta, const NormalizationOptions& options) {
  constexpr const char* kWho = kBatch;
  const OptionalArray &mean = options.running_mean, &var = options.running_var;
  const Variable& scale = gamma.variable(kWho);
  return apply_batch(
      {x.variable(kWho), &scale, &beta.variable(kWho), options.residual.get(kWho)}, scale.shape(),
      options.eps, options.relu,
      {mean.given(kWho) ? &mean : nullptr, var.given(kWho) ? &var : nullptr, options.decay});
}

Variable fixed_batch_normalization(const VariableOperand& x, const VariableOperand& gamma,
                                   const VariableOperand& beta, const VariableOperand& mean,
                                   const VariableOperand& var,
                                   const FixedBatchNormalizationOptions& options) {
  constexpr const char* kWho = kFixed;
  const Variable& scale = gamma.variable(kWho);
  return apply_fixed({x.variable(kWho), &scale, &beta.variable(kWho), options.residual.get(kWho),
                      &mean.variable(kWho), &var.variable(kWho)},
                     scale.shape(), options.eps, options.relu);
}

// The layer -------------------------------------------------------------------------------------

namespace {

const Shape& checked_size(const Shape& size) {
  CATENA_CHECK(ValueError, size.ndim() >= 1 && element_count(size) > 0, kBatch,
               ": expected a size of at least 1 channel, got ", size);
  return size;
}

OwnedPersistent average(const Array& start) { return OwnedPersistent(start, OverRanks::kMean); }

// What ranks do with a persistent array is fixed when it is made.
void redeclare(OwnedPersistent& p, OverRanks over_ranks) {
  if (p.over_ranks() == over_ranks) return;
  const OwnedPersistent old = std::move(p);
  p = OwnedPersistent(old.data(), over_ranks);
}

}  // namespace

struct BatchNormalization::Fusion {
  bool relu = false;
  const Variable* residual = nullptr;
};

BatchNormalization::BatchNormalization(int64_t size, const BatchNormalizationOptions& options)
    : BatchNormalization(Shape{size}, options) {}

BatchNormalization::BatchNormalization(const Shape& size, const BatchNormalizationOptions& o)
    : avg_mean(average(zeros(checked_size(size), compute_dtype(o.dtype)))),
      avg_var(average(initial_scale(kBatch, "initial_avg_var", size, compute_dtype(o.dtype),
                                    o.initial_avg_var, 1))),
      N(zeros({}, Dtype::kInt64), OverRanks::kPerRank),
      decay_(o.decay),
      eps_(o.eps) {
  CATENA_CHECK(DtypeError, is_float(o.dtype), kBatch, ": expected a floating dtype, got ", o.dtype);
  check_decay(kBatch, o.decay);
  check_eps(kBatch, o.eps);
  if (o.use_gamma)
    gamma =
        OwnedParameter(initial_scale(kBatch, "initial_gamma", size, o.dtype, o.initial_gamma, 1));
  if (o.use_beta)
    beta = OwnedParameter(initial_scale(kBatch, "initial_beta", size, o.dtype, o.initial_beta, 0));
}

Variable BatchNormalization::apply(const VariableOperand& x, bool train, bool finetune,
                                   const Fusion& fusion) const {
  CATENA_CHECK(ValueError, avg_mean.defined(),
               "BatchNormalization: this layer has no statistics; it was moved from");
  NormalizationOperands o{x.variable(kBatch), gamma.defined() ? &gamma.variable() : nullptr,
                          beta.defined() ? &beta.variable() : nullptr, fusion.residual};
  o.average = &avg_mean;
  const Array &mean = avg_mean.data(), &var = avg_var.data(), &updates = N.data();
  if (train) {
    const int64_t samples = o.x.shape().empty() ? 0 : o.x.shape()[0];
    const Variable y = apply_batch(std::move(o), mean.shape(), eps_, fusion.relu,
                                   {&mean, &var, decay_, finetune ? &updates : nullptr}, exchange_);
    // Those of a call that was refused have moved nothing.
    if (!is_repeated_forward()) {
      avg_mean.count_samples(samples);
      avg_var.count_samples(samples);
    }
    return y;
  }
  const Variable fixed_mean = Variable::constant(mean), fixed_var = Variable::constant(var);
  o.mean = &fixed_mean;
  o.var = &fixed_var;
  return apply_fixed(std::move(o), mean.shape(), eps_, fusion.relu);
}

Variable BatchNormalization::operator()(const VariableOperand& x,
                                        std::optional<YesNo> train) const {
  return apply(x, train.value_or(training()), false, {});
}

Variable BatchNormalization::relu(const VariableOperand& x, std::optional<YesNo> train) const {
  return apply(x, train.value_or(training()), false, {.relu = true});
}

Variable BatchNormalization::add_relu(const VariableOperand& x, const VariableOperand& residual,
                                      std::optional<YesNo> train) const {
  return apply(x, train.value_or(training()), false,
               {.relu = true, .residual = &residual.variable(kBatch)});
}

Variable BatchNormalization::finetune(const VariableOperand& x) const {
  return apply(x, true, true, {});
}

void BatchNormalization::start_finetuning() const { N.data().fill(0); }

void BatchNormalization::share_statistics(std::shared_ptr<const StatisticsExchange> exchange) {
  CATENA_CHECK(ValueError, avg_mean.defined(),
               "BatchNormalization: this layer has no statistics; it was moved from");
  const bool shared = exchange != nullptr;
  redeclare(avg_mean, shared ? OverRanks::kEqual : OverRanks::kMean);
  redeclare(avg_var, shared ? OverRanks::kEqual : OverRanks::kMean);
  redeclare(N, shared ? OverRanks::kEqual : OverRanks::kPerRank);
  exchange_ = std::move(exchange);
}

void BatchNormalization::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  if (gamma.defined()) visitor(prefix + "gamma", gamma);
  if (beta.defined()) visitor(prefix + "beta", beta);
}

void BatchNormalization::visit_persistents(const PersistentVisitor& visitor,
                                           const std::string& prefix) {
  visitor(prefix + "avg_mean", avg_mean);
  visitor(prefix + "avg_var", avg_var);
  visitor(prefix + "N", N);
}

}  // namespace catena::functions
