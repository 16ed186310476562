// softmax_cross_entropy: one kernel each way, which keeps a number a sample. Options add work on
// numbers of samples.
#include "catena/functions/loss/softmax_cross_entropy.h"

#include <limits>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "catena/core/entry_scope.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/array/reshape.h"
#include "catena/kernels/loss.h"
#include "functions/common/advice.h"
#include "functions/common/along_axis.h"
#include "functions/common/loss_parts.h"
#include "functions/common/scored_labels.h"
#include "functions/loss/gradient_in_place.h"

namespace catena::functions {
namespace {

constexpr const char* kSoftmaxCrossEntropy = "SoftmaxCrossEntropy";

// The kernels read 16-bit scores. Losses of distributions are made of other functions; a gradient
// in place of the scores has their dtype, in which a loss scale may not fit.
Autocast scores_row(const VariableOperand& t, const SoftmaxCrossEntropyOptions& options) {
  const bool plain =
      !is_float(t.variable(kSoftmaxCrossEntropy).dtype()) && !options.gradient_in_place;
  return plain ? Autocast::kNone : Autocast::kFloat32;
}

// What samples weigh where options say so, in the compute type.
struct SampleWeights {
  Reduction reduction;
  Array label;    // (outer, inner): of -log p[t]
  Array spread;   // (classes): of -log p[c], or null
  Array total;    // 0-d: the sum of spread, or null
  Array divisor;  // 0-d: of a mean
  Array counted;  // the sum of class weights, 0 where nothing counts; null without them

  // The factors that the gradient kernel takes, for the gradient of the loss.
  Array factors(const Array& gloss) const {
    Array g = gloss.astype(label.dtype(), false);
    if (reduction == Reduction::kMean) g = g / divisor;
    if (reduction == Reduction::kNone) g = g.reshape(label.shape());
    const Array labels = label * g;
    if (!spread.defined()) return labels.contiguous().expand_dims(0);
    return catena::stack({labels + total * g, labels, catena::broadcast_to(g, label.shape())});
  }
};

// Saves x and the labels, keeps two numbers of each sample (see kernels/loss.h) and the divisor.
class SoftmaxCrossEntropyNode final : public FunctionNode {
 public:
  SoftmaxCrossEntropyNode(const Array& lse, const Array& count, const Array& loss,
                          const Labels& labels, const std::optional<SampleWeights>& weights)
      : lse_(lse), count_(count), loss_(loss), labels_(labels), weights_(weights) {}
  std::string label() const override { return kSoftmaxCrossEntropy; }

  void backward(BackwardContext& context) override {
    const Variable gloss = context.grad_output();
    if (!gloss.defined() || !context.needs(0)) return;
    const Variable x = context.input(0);
    const Array t = labels_.saved ? labels_.as_int32(context.input(1).data()) : labels_.converted;
    if (context.create_graph() && x.data().size() > 0)
      return context.set_grad(
          0, cast(weights_ ? weighted(x, t, gloss) : composed(x, t, gloss), x.dtype()));
    const AxisView view(x.shape(), 1);
    const Array xs = view.of(x.data()), ts = t.reshape({view.outer, view.inner});
    give(context, 0, x.shape(), x.data(), [&](const Array& gx) {
      if (gx.size() == 0) return;
      const CrossEntropyCall call{&xs,   &ts,     labels_.ignore, labels_.normalize,
                                  &lse_, &count_, &loss_};
      const Array factors = weights_ ? weights_->factors(gloss.data()) : Array();
      kernels::softmax_cross_entropy_grad(
          gx.device(), {call, gloss.data(), gx.reshape(view.shape()), weights_ ? &factors : nullptr,
                        weights_ && weights_->spread.defined() ? &weights_->spread : nullptr});
    });
  }

 private:
  static Array one_hot_of(const Variable& x, const Array& label) {
    Shape classes(size_t(x.ndim()), 1);
    classes[1] = x.shape()[1];
    const Array number = arange(x.shape()[1], {Dtype::kInt32, x.device()}).reshape(classes);
    return equal(label, number).astype(x.dtype());
  }
  // (softmax(x) - onehot(t)) * mask / count * gloss
  Variable composed(const Variable& x, const Array& t, const Variable& gloss) const {
    const Array label = t.expand_dims(1);
    // Without valid labels the divisor is 0, and so is the mask.
    const Array divisor = catena::maximum(count_, 1.0);
    const Array weight =
        (not_equal(label, labels_.ignore).astype(count_.dtype()) / divisor).astype(x.dtype());
    return (softmax(x, 1) - one_hot_of(x, label)) * weight * gloss;
  }
  // (softmax(x) * (label + total) - (onehot(t) * label + spread)) * mask / divisor * gloss
  Variable weighted(const Variable& x, const Array& t, const Variable& gloss) const {
    const Array label = t.expand_dims(1),
                counts = weights_->label.reshape(t.shape()).expand_dims(1);
    Array all = counts, targets = one_hot_of(x, label) * counts;
    if (weights_->spread.defined()) {
      Shape classes(size_t(x.ndim()), 1);
      classes[1] = x.shape()[1];
      all = all + weights_->total;
      targets = targets + weights_->spread.reshape(classes);
    }
    Array mask = not_equal(label, labels_.ignore).astype(counts.dtype());
    if (weights_->reduction == Reduction::kMean) mask = mask / weights_->divisor;
    const Variable g = weights_->reduction == Reduction::kNone ? expand_dims(gloss, 1) : gloss;
    const Dtype d = x.dtype();
    return (softmax(x, 1) * all.astype(d) - targets.astype(d)) * mask.astype(d) * g;
  }

  Array lse_, count_, loss_;
  Labels labels_;
  std::optional<SampleWeights> weights_;
};

bool is_distribution(const Array& x, const Array& t) {
  return is_float(t.dtype()) && t.shape() == x.shape();
}

void check_softmax_cross_entropy(const FunctionCall& call) {
  const Array &x = call[0].data(), &t = call[1].data();
  const TypeOf scores(x, "x"), labels(t, "t");
  const Checks all(call.named(), scores, labels);
  const auto checks =
      all.advised([&] { return label_advice("softmax_cross_entropy(scores, labels)", x, t); });
  checks.require_float(scores);
  if (is_distribution(x, t)) {
    checks.require(scores.ndim() >= 2);
    return all.advised([&] { return dtype_advice(x, t); })
        .require(labels.dtype() == scores.dtype());
  }
  require_label_each(checks, scores, labels);
}

void check_options(const FunctionCall& call, const SoftmaxCrossEntropyOptions& options) {
  const double s = options.label_smoothing;
  CATENA_CHECK(ValueError, s >= 0 && s < 1, call.label(),
               ": expected a label_smoothing of at least 0 and below 1, got ", s);
  if (options.gradient_of_loss) {
    const Array& g = *options.gradient_of_loss;
    CATENA_CHECK(ValueError, options.gradient_in_place, call.label(),
                 ": gradient_of_loss goes with gradient_in_place alone");
    CATENA_CHECK(ValueError, g.defined() && g.ndim() == 0 && is_float(g.dtype()), call.label(),
                 ": expected a gradient_of_loss of one float without axes, got ",
                 g.defined() ? message("shape ", g.shape(), " of ", g.dtype()) : "no array");
  }
  CATENA_CHECK(
      ValueError, !options.gradient_in_place || !is_distribution(call[0].data(), call[1].data()),
      call.label(), ": gradient_in_place takes labels, got distributions over the classes (shape ",
      call[1].shape(), ", ", call[1].dtype(), "); leave gradient_in_place out");
}

// What the samples weigh; labels (outer, inner), of which those out of range become some class.
SampleWeights sample_weights(const FunctionCall& call, const AxisView& view, const Array& ts,
                             const Array& count, const SoftmaxCrossEntropyOptions& options) {
  const Dtype wide = count.dtype();
  const Device device = ts.device();
  const double s = options.label_smoothing;
  SampleWeights weights{options.reduction, {}, {}, {}, count, {}};
  if (s > 0)
    weights.spread = full({view.extent}, s / static_cast<double>(view.extent), {wide, device});
  if (options.class_weight) {
    const Array w = class_weights(call, *options.class_weight, view.extent, wide, device);
    const Array of_labels = take(w, catena::clip(ts, 0, view.extent - 1), 0, OutOfRange::kClip);
    weights.label = of_labels * (1 - s);
    if (s > 0) weights.spread = weights.spread * w;
    if (options.normalize) {
      const Array sum =
          catena::sum(catena::where(not_equal(ts, options.ignore_label), of_labels, 0.0));
      weights.divisor = catena::where(greater(sum, 0.0), sum, 1.0);
      weights.counted = sum;
    }
  } else {
    weights.label = full(ts.shape(), 1 - s, {wide, device});
  }
  if (s > 0) weights.total = catena::sum(weights.spread);
  return weights;
}

Array product(const Array& weight, const Array& loss) {
  return catena::where(weighs_nothing(weight, loss), 0.0, weight * loss);
}

// The losses of the samples, (outer, inner), in the compute type.
Array sample_losses(const Array& xs, const Array& ts, const Array& lse,
                    const SampleWeights& weights, int32_t ignore_label) {
  const int64_t classes = xs.shape()[1];
  const Array safe = catena::clip(ts, 0, classes - 1).expand_dims(1);
  const Array picked = pick_along_axis(xs, safe, 1).reshape(ts.shape());
  const Array largest = lse(0), log_sum = lse(1);
  Array losses = product(weights.label, (largest - picked) + log_sum);
  if (weights.spread.defined()) {
    const Array below = product(weights.spread.expand_dims(1), largest.expand_dims(1) - xs);
    losses = losses + (catena::sum(below, 1) + weights.total * log_sum);
  }
  if (!ts.device().is_cpu()) {
    const Array known = logical_and(greater_equal(ts, 0), less(ts, classes));
    losses = catena::where(known, losses, std::numeric_limits<double>::quiet_NaN());
  }
  return catena::where(not_equal(ts, ignore_label), losses, 0.0);
}

Array reduced_losses(const Array& losses, const SampleWeights& weights, const Array& t,
                     Dtype dtype) {
  switch (weights.reduction) {
    case Reduction::kMean: return (catena::sum(losses) / weights.divisor).astype(dtype, false);
    case Reduction::kSum: return catena::sum(losses).astype(dtype, false);
    case Reduction::kNone: break;
  }
  return losses.reshape(t.shape()).astype(dtype, false);
}

// Of distributions over the classes.
Variable of_distributions(const FunctionCall& call, const SoftmaxCrossEntropyOptions& options) {
  const Variable x = widened(call[0]);
  Variable t = widened(call[1]);
  const double classes = static_cast<double>(x.shape()[1]), s = options.label_smoothing;
  if (s > 0) t = t * (1 - s) + s / classes;
  if (options.class_weight) {
    Shape shape(size_t(x.ndim()), 1);
    shape[1] = x.shape()[1];
    t = t * class_weights(call, *options.class_weight, x.shape()[1], x.dtype(), x.device())
                .reshape(shape);
  }
  const Variable losses = negative(sum(weighted(t, log_softmax(x, 1)), 1));
  if (options.normalize) return reduced(losses, options.reduction, call[0].dtype());
  return reduced(losses, options.reduction, call[0].dtype(), sample_count(x));
}

bool is_plain(const SoftmaxCrossEntropyOptions& options) {
  return options.reduction == Reduction::kMean && !options.class_weight &&
         options.label_smoothing == 0;
}

bool is_mean_of_counted(const SoftmaxCrossEntropyOptions& options) {
  return options.reduction == Reduction::kMean && options.normalize;
}

// A mean over the labels that count, or over their class weights, says what it divided by.
Variable declared(const Variable& loss, const SoftmaxCrossEntropyOptions& options,
                  const Array& counted, const std::optional<SampleWeights>& weights,
                  const Array& labels) {
  if (is_mean_of_counted(options))
    declare_mean(loss, {weights && weights->counted.defined() ? weights->counted : counted,
                        static_cast<double>(labels.size())});
  return loss;
}

// The loss, whose gradient replaces the scores or, where they are not contiguous, their copy.
Variable in_place(FunctionCall& call, const Array& labels,
                  const SoftmaxCrossEntropyOptions& options) {
  const Variable& x = call[0];
  const bool writes_x = x.data().is_contiguous();
  if (writes_x) check_may_overwrite(call, x);
  const AxisView view(x.shape(), 1);
  const Array xs = view.of(x.data()), ts = labels.reshape({view.outer, view.inner});
  const Dtype wide = compute_dtype(x.dtype());
  const Array losses = Array::uninitialized(ts.shape(), wide, x.device()),
              count = Array::uninitialized({}, wide, x.device()),
              loss = Array::uninitialized({}, x.dtype(), x.device());
  Array expected;
  if (options.gradient_of_loss)
    expected = options.gradient_of_loss->to(x.device()).astype(x.dtype(), true);
  const bool is_mean = options.reduction == Reduction::kMean,
             each = options.reduction == Reduction::kNone,
             counts = is_mean && !(options.class_weight && options.normalize);
  const Array counted = counts ? Array::uninitialized({}, wide, x.device()) : Array();
  std::optional<SampleWeights> weights;
  if (!is_plain(options)) weights = sample_weights(call, view, ts, count, options);
  const auto given = [](const Array& a) { return a.defined() ? &a : nullptr; };
  CrossEntropyInPlaceCall kernel{xs,
                                 ts,
                                 options.ignore_label,
                                 losses,
                                 each ? nullptr : &loss,
                                 is_mean ? &count : nullptr,
                                 counts,
                                 options.normalize,
                                 given(expected)};
  kernel.counted = given(counted);
  if (weights) {
    if (is_mean) kernel.divisor = &weights->divisor;
    kernel.weights = &weights->label;
    kernel.spread = given(weights->spread);
    kernel.total = given(weights->total);
  }
  kernels::softmax_cross_entropy_in_place(x.device(), kernel);
  xs.note_write();
  const Array result = each ? losses.reshape(call[1].shape()).astype(x.dtype(), false) : loss;
  const Variable recorded = call.record(result, [&] {
    auto node = make_node<GradientInPlaceNode>(call.name(), xs, expected);
    if (writes_x) node->is_in(x);
    return node;
  });
  return declared(recorded, options, counted, weights, labels);
}

}  // namespace

void check_labels(const Array& t, int64_t classes, int32_t ignore_label) {
  const EntryScope call(kSoftmaxCrossEntropy);
  CATENA_CHECK(DtypeError, t.dtype() == Dtype::kInt32 || t.dtype() == Dtype::kInt64,
               "expected labels of int32 or int64, got ", t.dtype());
  Labels::check(t, classes, ignore_label);
}

Variable softmax_cross_entropy(const VariableOperand& x, const VariableOperand& t, YesNo normalize,
                               int32_t ignore_label) {
  return softmax_cross_entropy(x, t, {.normalize = normalize, .ignore_label = ignore_label});
}

Variable softmax_cross_entropy(const VariableOperand& x_operand, const VariableOperand& t_operand,
                               const SoftmaxCrossEntropyOptions& options) {
  FunctionCall call(kSoftmaxCrossEntropy, scores_row(t_operand, options), x_operand, t_operand);
  const Variable &x = call[0], &t = call[1];
  check_softmax_cross_entropy(call);
  check_options(call, options);
  call.require_one_device();
  if (is_distribution(x.data(), t.data())) return of_distributions(call, options);
  if (x.device().is_cpu()) check_labels(t.data(), x.shape()[1], options.ignore_label);
  Labels labels(t.data(), options.normalize, options.ignore_label);
  if (options.gradient_in_place && x.size() > 0 && x.requires_grad() && call.is_recorded())
    return in_place(call, labels.converted, options);
  const AxisView view(x.shape(), 1);
  const Dtype sums = compute_dtype(x.dtype()), given = AutocastScope::of_sums(x.dtype());
  Array loss = Array::uninitialized({}, given, x.device());
  const Array lse = Array::uninitialized({2, view.outer, view.inner}, sums, x.device());
  const Array count = Array::uninitialized({}, sums, x.device());
  const Array counted =
      is_mean_of_counted(options) ? Array::uninitialized({}, sums, x.device()) : Array();
  std::optional<SampleWeights> weights;
  if (lse.size() > 0 && x.size() > 0) {
    const Array xs = view.of(x.data()), ts = labels.converted.reshape({view.outer, view.inner});
    kernels::softmax_cross_entropy(
        x.device(), CrossEntropyCall{&xs, &ts, options.ignore_label, options.normalize, &lse,
                                     &count, &loss, counted.defined() ? &counted : nullptr});
    if (!is_plain(options)) {
      weights = sample_weights(call, view, ts, count, options);
      const Array losses = sample_losses(xs, ts, lse, *weights, options.ignore_label);
      loss = reduced_losses(losses, *weights, t.data(), given);
    }
  } else {
    if (options.reduction == Reduction::kNone)
      loss = Array::uninitialized(t.shape(), given, x.device());
    loss.fill(0.0);
    count.fill(0.0);
    if (counted.defined()) counted.fill(0.0);
  }
  const Variable recorded = call.record(loss, [&] {
    if (labels.saved) labels.converted = Array();
    auto node = make_node<SoftmaxCrossEntropyNode>(lse, count, loss, labels, weights);
    node->save_input(0, x);
    if (labels.saved) node->save_input(1, t);
    return node;
  });
  return declared(recorded, options, counted, weights, t.data());
}

}  // namespace catena::functions
