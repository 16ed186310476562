#include "catena/functions/normalization/batch_normalization.h"

#include <cmath>

#include "catena/core/memory_profile.h"
#include "catena/functions/array.h"
#include "catena/kernels/normalization.h"
#include "functions/advice.h"
#include "functions/support.h"

namespace catena::functions {
namespace {

// Operands of one call; what is absent is null.
struct Operands {
  Variable x;
  const Variable* gamma = nullptr;
  const Variable* beta = nullptr;
  const Variable* residual = nullptr;
  const Variable* mean = nullptr;  // given statistics
  const Variable* var = nullptr;
};

// Averages that a call moves.
struct RunningStatistics {
  const Array* mean = nullptr;
  const Array* var = nullptr;
  double decay = 0;
  const Array* updates = nullptr;  // counted, and then used instead of the decay
};

// What the normalization of given operands is, decided once for its forward and backward passes.
struct Plan {
  Shape x_shape, channels;
  ChannelLayout layout;
  bool last;  // channels last in memory, in x, y and their gradients
  bool relu;
  double eps;

  // Axes 1 to channel_axes() of x are the channels.
  int channel_axes() const { return channels.ndim(); }
  Axes summed_axes() const {
    Axes axes{0};
    for (int i = 1 + channel_axes(); i < x_shape.ndim(); ++i) axes.push_back(i);
    return axes;
  }
  // The shape in which a channel array broadcasts to x.
  Shape broadcast_shape() const {
    Shape shape(size_t(x_shape.ndim()), 1);
    for (int i = 0; i < channel_axes(); ++i) shape[size_t(i + 1)] = channels[size_t(i)];
    return shape;
  }
};

// Layouts ---------------------------------------------------------------------------------------

// The axes of x in the order in which they lie in memory, the channels last.
Axes channels_last_order(int ndim, int channel_axes) {
  Axes order{0};
  for (int i = 1 + channel_axes; i < ndim; ++i) order.push_back(i);
  for (int i = 1; i <= channel_axes; ++i) order.push_back(i);
  return order;
}

Axes inverse_order(const Axes& order) {
  Axes inverse(order.size(), int64_t{0});
  for (size_t i = 0; i < order.size(); ++i) inverse[size_t(order[i])] = int64_t(i);
  return inverse;
}

// Whether the array is dense in one of the two layouts that kernels take. The stride of an axis of
// one element means nothing.
bool has_layout(const Array& a, int channel_axes, bool last) {
  if (!last) return a.is_contiguous();
  int64_t stride = a.itemsize();
  const auto fits = [&](int axis) {
    const bool good = a.shape()[size_t(axis)] == 1 || a.strides()[size_t(axis)] == stride;
    stride *= a.shape()[size_t(axis)];
    return good;
  };
  for (int i = channel_axes; i >= 1; --i)
    if (!fits(i)) return false;
  for (int i = a.ndim() - 1; i > channel_axes; --i)
    if (!fits(i)) return false;
  return fits(0);
}

Array laid_out(const Plan& p, const Array& a) {
  if (has_layout(a, p.channel_axes(), p.last)) return a;
  if (!p.last) return a.contiguous();
  const Axes order = channels_last_order(a.ndim(), p.channel_axes());
  return a.transpose(order).contiguous().transpose(inverse_order(order));
}

// Uninitialised, of x's shape.
Array batch_array(const Plan& p, const Array& like) {
  if (!p.last) return Array::uninitialized(p.x_shape, like.dtype(), like.device());
  const Axes order = channels_last_order(p.x_shape.ndim(), p.channel_axes());
  Shape shape;
  for (const int64_t axis : order) shape.push_back(p.x_shape[size_t(axis)]);
  return Array::uninitialized(shape, like.dtype(), like.device()).transpose(inverse_order(order));
}

Array channel_array(const Plan& p, const Array& x) {
  return Array::uninitialized(p.channels, compute_dtype(x.dtype()), x.device());
}

Plan plan_of(const Array& x, const Shape& channels, double eps, bool relu) {
  Plan p{x.shape(), channels, {1, 1, 1}, false, relu, eps};
  const int axes = channels.ndim();
  p.last = !x.is_contiguous() && has_layout(x, axes, true);
  for (const int64_t extent : channels) p.layout.channels *= extent;
  p.layout.outer = x.shape()[0];
  for (int i = 1 + axes; i < x.ndim(); ++i)
    (p.last ? p.layout.outer : p.layout.inner) *= x.shape()[size_t(i)];
  return p;
}

// Checks ----------------------------------------------------------------------------------------

// What channel operands share: the shape (channels), and the dtype of statistics.
struct ChannelType {
  const Shape& channels;
  Dtype dtype;
  auto extent(int i) const {
    return shown(channels[size_t(i)], [i] { return message("channels[", i, "]"); });
  }
};

void check_types(const Operands& o, const Shape& channels) {
  const ChannelType type{channels, compute_dtype(o.x.dtype())};
  const Variable* named = o.gamma ? o.gamma : o.beta;
  const auto label = [&] {
    return named ? layer_label("BatchNormalization", *named) : std::string("BatchNormalization");
  };
  const auto advice = [&] {
    const bool other = named && is_float(named->dtype()) && named->dtype() != type.dtype;
    return other ? layer_advice(o.x.data(), named->data()) : std::string();
  };
  const Checks checks(label, advice);
  const TypeOf x(o.x.data(), 0);
  boost::container::small_vector<TypeOf, 4> operands;
  for (const Variable* v : {o.gamma, o.beta, o.mean, o.var})
    if (v != nullptr) operands.emplace_back(v->data(), static_cast<int>(operands.size()) + 1);

  checks.require_float(o.x.data());
  for (const TypeOf& operand : operands) checks.require(operand.dtype() == type.dtype);
  checks.require(x.ndim() >= channels.ndim() + 1);
  for (int i = 0; i < channels.ndim(); ++i) checks.require(x.shape(i + 1) == type.extent(i));
  for (const TypeOf& operand : operands) {
    checks.require(operand.ndim() == channels.ndim());
    for (int i = 0; i < channels.ndim(); ++i) checks.require(operand.shape(i) == type.extent(i));
  }
  if (o.residual == nullptr) return;
  const TypeOf residual(o.residual->data(), static_cast<int>(operands.size()) + 1);
  checks.require(residual.dtype() == x.dtype(), residual.ndim() == x.ndim());
  for (int i = 0; i < o.x.ndim(); ++i) checks.require(residual.shape(i) == x.shape(i));
}

void check_devices(const char* who, const Operands& o) {
  for (const Variable* v : {o.gamma, o.beta, o.residual, o.mean, o.var}) {
    if (v == nullptr || v->device() == o.x.device()) continue;
    check_same_device(o.gamma ? layer_label(who, *o.gamma).c_str() : who, o.x.data(), v->data());
  }
}

void check_eps(const char* who, double eps) {
  CATENA_CHECK(ValueError, eps >= 0 && std::isfinite(eps), who,
               ": expected an eps of at least 0, got ", eps);
}

void check_decay(const char* who, double decay) {
  CATENA_CHECK(ValueError, decay >= 0 && decay <= 1, who, ": expected a decay of [0, 1], got ",
               decay);
}

void check_running(const Array& x, const Shape& channels, const RunningStatistics& running) {
  constexpr const char* kWho = "batch_normalization";
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

// Kernels on arrays -----------------------------------------------------------------------------

// Channel operands as kernels take them.
struct ChannelOperand {
  explicit ChannelOperand(const Variable* v) : array(v ? v->data().contiguous() : Array()) {}
  const Array* pointer() const { return array.defined() ? &array : nullptr; }
  Array array;
};

struct BatchStatistics {
  Array mean, inverse_deviation;
};

// y by the statistics of x, which are returned.
BatchStatistics normalize(const Plan& p, const Operands& o, const RunningStatistics& running,
                          const Array& y) {
  const Array x = laid_out(p, o.x.data());
  const Array residual = o.residual ? laid_out(p, o.residual->data()) : Array();
  const ChannelOperand gamma(o.gamma), beta(o.beta);
  const BatchStatistics made{channel_array(p, x), channel_array(p, x)};
  if (running.updates) catena::add(*running.updates, 1, *running.updates);
  kernels::batch_normalization(
      x.device(), {p.layout, &x, gamma.pointer(), beta.pointer(), o.residual ? &residual : nullptr,
                   p.eps, p.relu, &y, &made.mean, &made.inverse_deviation, running.mean,
                   running.var, running.decay, running.updates});
  for (const Array* a : {running.mean, running.var})
    if (a != nullptr) a->note_write();
  return made;
}

void normalize_fixed(const Plan& p, const Operands& o, const Array& y) {
  if (y.size() == 0) return;
  const Array x = laid_out(p, o.x.data());
  const Array residual = o.residual ? laid_out(p, o.residual->data()) : Array();
  const ChannelOperand gamma(o.gamma), beta(o.beta), mean(o.mean), var(o.var);
  kernels::fixed_batch_normalization(
      x.device(), {p.layout, &x, gamma.pointer(), beta.pointer(), o.residual ? &residual : nullptr,
                   mean.pointer(), var.pointer(), p.eps, p.relu, &y});
}

// Recording -------------------------------------------------------------------------------------

// Where the operands are among the inputs of the node; -1 where there is none.
struct Places {
  int gamma = -1, beta = -1, residual = -1, mean = -1, var = -1;
};

// Gradients of a batch normalization. Its own statistics are kept; given ones (`fixed`) are inputs.
class BatchNormalizationNode final : public FunctionNode {
 public:
  BatchNormalizationNode(const Plan& plan, const Places& places, const BatchStatistics& own)
      : plan_(plan), at_(places), own_(own) {}
  std::string label() const override {
    return fixed() ? "FixedBatchNormalization" : "BatchNormalization";
  }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.create_graph()) return backward_recorded(context, gy);
    if (element_count(plan_.x_shape) == 0) return give_zeros(context);
    backward_by_kernel(context, laid_out(plan_, gy.data()));
  }

 private:
  bool fixed() const { return at_.mean >= 0; }
  bool wants(const BackwardContext& context, int place) const {
    return place >= 0 && context.needs(place);
  }

  // A gradient of a channel operand: a new array, or the memory where the gradient shall be.
  struct Target {
    Array array;
    bool accumulate = false, in_place = false;
    const Array* pointer() const { return array.defined() ? &array : nullptr; }
  };
  Target target(BackwardContext& context, int place, const Array& x) const {
    if (!wants(context, place)) return {};
    const auto d = context.destination(place);
    if (d && d.array->is_contiguous() && d.array->dtype() == compute_dtype(x.dtype()))
      return {*d.array, d.accumulate, true};
    return {channel_array(plan_, x)};
  }
  void give(BackwardContext& context, int place, const Target& t) const {
    if (!t.array.defined()) return;
    if (t.in_place)
      context.written(place);
    else
      context.set_grad(place, Variable::constant(t.array));
  }

  void backward_by_kernel(BackwardContext& context, const Array& g) const {
    const Array x = laid_out(plan_, context.input(0).data());
    const bool wants_statistics = wants(context, at_.mean) || wants(context, at_.var);
    // The kernel writes both at once, so that one parameter as gamma and beta needs two places.
    const bool shared = wants(context, at_.gamma) && wants(context, at_.beta) &&
                        inputs()[size_t(at_.gamma)] == inputs()[size_t(at_.beta)];
    const bool own_beta = wants_statistics || shared;
    // The gradients of given statistics are made of those of gamma and beta.
    const Target g_gamma = wants_statistics ? Target{channel_array(plan_, x)}
                                            : target(context, at_.gamma, x),
                 g_beta = own_beta ? Target{channel_array(plan_, x)} : target(context, at_.beta, x);
    const Array y = plan_.relu ? context.output().data() : Array();
    const bool masked = plan_.relu && wants(context, at_.residual);
    const Array gx = context.needs(0) || masked ? batch_array(plan_, x) : Array();
    const Array g_residual = masked ? batch_array(plan_, x) : Array();
    const Array gamma = at_.gamma >= 0 ? context.input(at_.gamma).data().contiguous() : Array();
    const BatchStatistics s = statistics(context);
    const auto pointer = [](const Array& a) { return a.defined() ? &a : nullptr; };
    kernels::batch_normalization_grad(
        x.device(), {plan_.layout, &x, &g, pointer(y), pointer(gamma), &s.mean,
                     &s.inverse_deviation, fixed(), pointer(gx), pointer(g_residual),
                     g_gamma.pointer(), g_beta.pointer(), g_gamma.accumulate, g_beta.accumulate});
    if (context.needs(0)) context.set_grad(0, Variable::constant(gx));
    if (wants(context, at_.residual))
      context.set_grad(at_.residual, Variable::constant(masked ? g_residual : g));
    if (wants_statistics) give_statistics(context, s, gamma, g_gamma.array, g_beta.array);
    if (wants(context, at_.gamma)) give(context, at_.gamma, g_gamma);
    if (wants(context, at_.beta)) give(context, at_.beta, g_beta);
  }

  BatchStatistics statistics(BackwardContext& context) const {
    if (!fixed()) return own_;
    const Array var = context.input(at_.var).data();
    return {context.input(at_.mean).data().contiguous(), 1 / catena::sqrt(var + plan_.eps)};
  }
  void give_statistics(BackwardContext& context, const BatchStatistics& s, const Array& gamma,
                       const Array& g_gamma, const Array& g_beta) const {
    const Array factor = gamma.defined() ? gamma * s.inverse_deviation : s.inverse_deviation;
    if (wants(context, at_.mean))
      context.set_grad(at_.mean, Variable::constant(-(factor * g_beta)));
    if (wants(context, at_.var))
      context.set_grad(at_.var, Variable::constant(factor * s.inverse_deviation * g_gamma * -0.5));
  }

  void give_zeros(BackwardContext& context) const {
    for (size_t i = 0; i < inputs().size(); ++i) {
      const VariableNode& input = *inputs()[i];
      if (context.needs(int(i)))
        context.set_grad(int(i),
                         Variable::constant(zeros(input.shape, {input.dtype, input.device})));
    }
  }

  // The same formulas on variables; the statistics of the batch are made anew, as functions of x.
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    const Variable masked = plan_.relu ? relu_grad(gy, context.output()) : gy;
    const Dtype own = inputs()[0]->dtype, wide = compute_dtype(own);
    const Variable x = cast(context.input(0), wide), g = cast(masked, wide);
    const Axes axes = plan_.summed_axes();
    const Shape kept = plan_.broadcast_shape();
    const auto channel = [&](int place) { return reshape(context.input(place), kept); };
    const Variable mean = fixed() ? channel(at_.mean) : functions::mean(x, axes, true);
    const Variable centred = x - mean;
    const Variable var = fixed() ? channel(at_.var) : functions::mean(square(centred), axes, true);
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
    const double m = double(plan_.layout.count());
    const Variable gx = fixed() ? factor * g : factor * (g - (g_beta + xhat * g_gamma) / m);
    context.set_grad(0, cast(gx, own));
  }

  Plan plan_;
  Places at_;
  BatchStatistics own_;
};

// The result as a variable; `own` are the statistics that the forward pass made.
Variable record_normalization(const Plan& plan, const Operands& o, const BatchStatistics& own,
                              const Array& y) {
  Variable all[6] = {o.x};
  int count = 1;
  Places at;
  const auto add = [&](const Variable* v, int& place) {
    if (v == nullptr) return;
    all[count] = *v;
    place = count++;
  };
  add(o.gamma, at.gamma);
  add(o.beta, at.beta);
  add(o.residual, at.residual);
  add(o.mean, at.mean);
  add(o.var, at.var);
  return record("batch_normalization", std::span<const Variable>(all, size_t(count)), y, [&] {
    auto node = make_node<BatchNormalizationNode>(plan, at, own);
    node->save_input(0, o.x);
    if (o.gamma) node->save_input(at.gamma, *o.gamma);
    if (o.mean) node->save_input(at.mean, *o.mean);
    if (o.var) node->save_input(at.var, *o.var);
    if (plan.relu) node->save_output(0, y);
    return node;
  });
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

Variable apply_batch(Operands o, const Shape& channels, double eps, bool relu,
                     const RunningStatistics& running) {
  constexpr const char* kWho = "batch_normalization";
  const CallScope scope(kWho);
  check_eps(kWho, eps);
  const WideOperand gamma(o.gamma, o.x.dtype()), beta(o.beta, o.x.dtype());
  check_types(o, channels);
  check_devices(kWho, o);
  check_running(o.x.data(), channels, running);
  const Plan plan = plan_of(o.x.data(), channels, eps, relu);
  CATENA_CHECK(ValueError, o.x.size() > 0 && plan.layout.count() > 1, kWho, ": x of shape ",
               o.x.shape(), " has ", o.x.size() == 0 ? "no values" : "one value a channel",
               ", which has no variance; use at least two samples, or given statistics "
               "(fixed_batch_normalization, a layer in test state)");
  const Array y = batch_array(plan, o.x.data());
  const BatchStatistics own = normalize(plan, o, running, y);
  return record_normalization(plan, o, own, y);
}

Variable apply_fixed(Operands o, const Shape& channels, double eps, bool relu) {
  constexpr const char* kWho = "fixed_batch_normalization";
  const CallScope scope(kWho);
  check_eps(kWho, eps);
  const WideOperand gamma(o.gamma, o.x.dtype()), beta(o.beta, o.x.dtype()),
      mean(o.mean, o.x.dtype()), var(o.var, o.x.dtype());
  check_types(o, channels);
  check_devices(kWho, o);
  const Plan plan = plan_of(o.x.data(), channels, eps, relu);
  const Array y = batch_array(plan, o.x.data());
  normalize_fixed(plan, o, y);
  return record_normalization(plan, o, {}, y);
}

const Variable* optional_operand(const Variable& v) { return v.defined() ? &v : nullptr; }

}  // namespace

Variable batch_normalization(const VariableOperand& x, const VariableOperand& gamma,
                             const VariableOperand& beta, const NormalizationOptions& options) {
  constexpr const char* kWho = "batch_normalization";
  const Array &mean = options.running_mean, &var = options.running_var;
  const Variable& scale = gamma.variable(kWho);
  return apply_batch(
      {x.variable(kWho), &scale, &beta.variable(kWho), optional_operand(options.residual)},
      scale.shape(), options.eps, options.relu,
      {mean.defined() ? &mean : nullptr, var.defined() ? &var : nullptr, options.decay});
}

Variable fixed_batch_normalization(const VariableOperand& x, const VariableOperand& gamma,
                                   const VariableOperand& beta, const VariableOperand& mean,
                                   const VariableOperand& var,
                                   const FixedNormalizationOptions& options) {
  constexpr const char* kWho = "fixed_batch_normalization";
  const Variable& scale = gamma.variable(kWho);
  return apply_fixed(
      {x.variable(kWho), &scale, &beta.variable(kWho), optional_operand(options.residual),
       &mean.variable(kWho), &var.variable(kWho)},
      scale.shape(), options.eps, options.relu);
}

// The layer -------------------------------------------------------------------------------------

namespace {

constexpr const char* kLayer = "BatchNormalization";

const Shape& checked_size(const Shape& size) {
  CATENA_CHECK(ValueError, size.ndim() >= 1 && element_count(size) > 0, kLayer,
               ": expected a size of at least 1 channel, got ", size);
  return size;
}

OwnedParameter start_values(const char* name, const Shape& size, Dtype dtype, double value,
                            const std::optional<Array>& given) {
  if (!given) return OwnedParameter(full(size, value, dtype));
  CATENA_CHECK(ShapeError, given->shape() == size, kLayer, ": ", name, " has shape ",
               given->shape(), ", expected ", size);
  return OwnedParameter(given->astype(dtype));
}

OwnedPersistent average(const Shape& size, Dtype dtype) {
  return OwnedPersistent(zeros(size, compute_dtype(dtype)), OverRanks::kMean);
}

}  // namespace

struct BatchNormalization::Fusion {
  bool relu = false;
  const Variable* residual = nullptr;
};

BatchNormalization::BatchNormalization(int64_t size, const BatchNormalizationOptions& options)
    : BatchNormalization(Shape{size}, options) {}

BatchNormalization::BatchNormalization(const Shape& size, const BatchNormalizationOptions& o)
    : avg_mean(average(checked_size(size), o.dtype)),
      avg_var(average(size, o.dtype)),
      N(zeros({}, Dtype::kInt64), OverRanks::kPerRank),
      decay_(o.decay),
      eps_(o.eps) {
  CATENA_CHECK(DtypeError, is_float(o.dtype), kLayer, ": expected a floating dtype, got ", o.dtype);
  check_decay(kLayer, o.decay);
  check_eps(kLayer, o.eps);
  if (o.use_gamma) gamma = start_values("initial_gamma", size, o.dtype, 1, o.initial_gamma);
  if (o.use_beta) beta = start_values("initial_beta", size, o.dtype, 0, o.initial_beta);
}

Variable BatchNormalization::apply(const VariableOperand& x, bool train, bool finetune,
                                   const Fusion& fusion) const {
  CATENA_CHECK(ValueError, avg_mean.defined(),
               "BatchNormalization: this layer has no statistics; it was moved from");
  Operands o{x.variable(kLayer), gamma.defined() ? &gamma.variable() : nullptr,
             beta.defined() ? &beta.variable() : nullptr, fusion.residual};
  const Array &mean = avg_mean.data(), &var = avg_var.data(), &updates = N.data();
  if (train) {
    return apply_batch(std::move(o), mean.shape(), eps_, fusion.relu,
                       {&mean, &var, decay_, finetune ? &updates : nullptr});
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
               {.relu = true, .residual = &residual.variable(kLayer)});
}

Variable BatchNormalization::finetune(const VariableOperand& x) const {
  return apply(x, true, true, {});
}

void BatchNormalization::start_finetuning() const { N.data().fill(0); }

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
