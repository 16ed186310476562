// linear_cross_entropy: chunks of tokens, whose scores the kernel of softmax_cross_entropy in place
// overwrites with their gradient.
//
// Gradients in the forward pass are those of the sum of the losses. The divisor of a mean and the
// gradient of the loss come as a factor in backward, in float32 or wider: in 16 bits the gradient
// of one token of many would be rounded to nothing.
#include "catena/functions/loss/linear_cross_entropy.h"

#include <limits>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "catena/core/entry_scope.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/logsumexp.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/sum.h"
#include "functions/common/advice.h"
#include "functions/common/labels.h"
#include "functions/common/loss_parts.h"
#include "functions/loss/score_chunks.h"

namespace catena::functions {
namespace {

using Options = LinearCrossEntropyOptions;
using Ranks = std::shared_ptr<const ClassesOverRanks>;

// Places of the operands.
struct Place {
  enum : int { h, W, t, b };
};

// `h` and `t` of any leading axes; t in int32.
Matrices matrices(const Array& h, const Array& W, const Array& b, const Array& t) {
  return {h.reshape({t.size(), W.shape()[1]}), W.contiguous(),
          b.defined() ? b.contiguous() : Array(), t.reshape({t.size(), 1})};
}

// Keeps the gradients that the forward pass made; of losses for each token nothing but the
// operands.
class LinearCrossEntropyNode final : public FunctionNode {
 public:
  LinearCrossEntropyNode(const char* name, const Options& options, const Ranks& ranks,
                         const Labels& labels, const Array& divisor, const Gradients& gradients)
      : name_(name),
        options_(options),
        ranks_(ranks),
        labels_(labels),
        divisor_(divisor),
        gradients_(gradients) {}
  std::string label() const override { return name_; }

  void backward(BackwardContext& context) override {
    const Variable gloss = context.grad_output();
    if (!gloss.defined()) return;
    if (context.create_graph()) return composed(context, gloss);
    if (options_.reduction == Reduction::kNone) return again(context, gloss.data());
    const Array g = gloss.data().reshape(Shape{}), factor = divisor_.defined() ? g / divisor_ : g;
    give_times(context, Place::h, gradients_.h, factor);
    give_times(context, Place::W, gradients_.W, factor);
    give_times(context, Place::b, gradients_.b, factor);
  }

 private:
  static bool is_wanted(const BackwardContext& context, const FunctionNode& node, int i) {
    return i < int(node.inputs().size()) && context.needs(i);
  }
  Array labels(BackwardContext& context) const {
    return labels_.saved ? Labels::as_int32(context.input(Place::t).data()) : labels_.converted;
  }

  // The gradient of operand i is g times the factor, a number of the compute type.
  void give_times(BackwardContext& context, int i, const Array& g, const Array& factor) const {
    if (!is_wanted(context, *this, i)) return;
    const VariableNode& input = *inputs()[size_t(i)];
    CATENA_CHECK(GradientError, g.defined(), label(), ": the gradient of operand ", i,
                 " was not wanted in the forward pass, which makes it; unfreeze parameters before");
    const Array given = g.reshape(input.shape);
    const auto write = [&](const Array& to) {
      Out out(to);
      out.dtype = factor.dtype();
      multiply(given, factor, out);
    };
    const BackwardContext::Destination d = context.wide_destination(i);
    if (d && !d.accumulate) {
      write(*d.array);
      return context.written(i);
    }
    if (d && d.array->dtype() != input.dtype) {
      catena::add(*d.array, given * factor, *d.array);
      return context.written(i);
    }
    const Array to = Array::uninitialized(input.shape, input.dtype, g.device());
    write(to);
    context.set_grad(i, Variable::constant(to));
  }
  // Of losses for each token, whose gradients enter before they are added up.
  void again(BackwardContext& context, const Array& gloss) const {
    const bool bias = inputs().size() > Place::b;
    const Wanted wanted{context.needs(Place::h), context.needs(Place::W),
                        is_wanted(context, *this, Place::b)};
    if (!wanted.any()) return;
    const Array h = context.input(Place::h).data(), W = context.input(Place::W).data(),
                b = bias ? context.input(Place::b).data() : Array(), t = labels(context);
    const Matrices m = matrices(h, W, b, t);
    const Array losses = Array::uninitialized(m.t.shape(), m.wide(), h.device()),
                factors = gloss.contiguous().reshape(m.t.shape());
    const Gradients g = ScoreChunks(name_, m, options_, ranks_.get()).run(losses, factors, wanted);
    const auto give = [&](int i, const Array& gradient) {
      const VariableNode& input = *inputs()[size_t(i)];
      const Array g = gradient.reshape(input.shape);
      if (const BackwardContext::Destination d = context.wide_destination(i)) {
        catena::detail::assign_or_add(*d.array, g, d.accumulate);
        return context.written(i);
      }
      context.set_grad(i, Variable::constant(g.astype(input.dtype, false)));
    };
    if (wanted.h) give(Place::h, g.h);
    if (wanted.W) give(Place::W, g.W);
    if (wanted.b) give(Place::b, g.b);
  }
  // What is whole on all ranks, for work with the classes of this one; the sum of that work.
  Variable copied(const Variable& x) const { return ranks_ ? ranks_->copied(x) : x; }
  Variable summed(const Variable& part) const { return ranks_ ? ranks_->summed(part) : part; }
  // Of the scores z, the softmax over all classes times 1 + 2 z_loss lse.
  Variable probabilities(const Variable& z) const {
    const double factor = 2 * options_.z_loss;
    if (!ranks_)
      return factor == 0 ? softmax(z, 1) : softmax(z, 1) * (logsumexp(z, 1, true) * factor + 1);
    const double none = -std::numeric_limits<double>::infinity();
    const Array largest =
        ranks_->largest(catena::amax(z.data(), {.axes = {1}, .keepdims = true, .initial = none}));
    const Variable below = z - largest, log_sum = copied(log(summed(sum(exp(below), 1, true)))),
                   p = exp(below - log_sum);
    return factor == 0 ? p : p * ((log_sum + largest) * factor + 1);
  }
  // gz = (softmax(z) (1 + 2 z_loss lse) - targets) mask gloss / divisor, and the gradients of
  // z = h W^T + b.
  void composed(BackwardContext& context, const Variable& gloss) const {
    const bool bias = inputs().size() > Place::b;
    const Variable given = context.input(Place::h), W = context.input(Place::W);
    const int64_t tokens = element_count(inputs()[Place::t]->shape), classes = W.shape()[0];
    const Variable h = copied(reshape(given, {tokens, W.shape()[1]}));
    const Array t = labels(context).reshape({tokens, 1});
    Variable z = matmul(h, W, false, true);
    if (bias) z = z + context.input(Place::b);
    z = widened(z);
    const double s = options_.label_smoothing;
    const int64_t first = ranks_ ? ranks_->first : 0, all = ranks_ ? ranks_->classes : classes;
    const Array number =
        arange(first, first + classes, {Dtype::kInt32, t.device()}).reshape({1, classes});
    const Array targets =
        equal(t, number).astype(z.dtype()) * (1 - s) + s / static_cast<double>(all);
    Array mask = not_equal(t, labels_.ignore).astype(z.dtype());
    if (divisor_.defined()) mask = mask / divisor_;
    const Variable g = copied(gloss.size() == tokens && options_.reduction == Reduction::kNone
                                  ? reshape(gloss, {tokens, 1})
                                  : gloss);
    const Variable gz = cast((probabilities(z) - targets) * mask * g, W.dtype());
    if (context.needs(Place::h))
      context.set_grad(Place::h, reshape(summed(matmul(gz, W)), given.shape()));
    if (context.needs(Place::W)) context.set_grad(Place::W, matmul(gz, h, true));
    if (is_wanted(context, *this, Place::b)) context.set_grad(Place::b, sum(gz, 0));
  }

  const char* name_;
  Options options_;
  Ranks ranks_;
  Labels labels_;
  Array divisor_;  // of a mean
  Gradients gradients_;
};

std::string operands_advice(const Array& h, const Array& W, const Array& t, int64_t classes) {
  if (!is_float(h.dtype()) && is_float(t.dtype()))
    return "The arguments look swapped: expected are (h, W, labels).";
  if (h.dtype() != W.dtype()) return layer_dtype_advice(h, W);
  if (W.ndim() != 2) return "The weights W are expected as (classes, size), a matrix.";
  const int64_t size = W.shape()[1];
  if (h.ndim() < 1 || h.shape().back() != size)
    return message("Expected is h of shape (..., ", size, "), ", size,
                   " numbers for each token; h has shape ", h.shape(), ".");
  Shape labels = h.shape();
  labels.pop_back();
  std::string text = message("Expected as labels are class numbers of 0 to ", classes - 1,
                             " in int32 or int64, of shape ", labels, ", one for each token of h.");
  if (t.dtype() != Dtype::kInt32 && t.dtype() != Dtype::kInt64)
    text += " Convert the labels with .astype(dtype::int32).";
  else if (t.size() == element_count(labels))
    text += " Give the labels the leading axes of h with t.reshape(shape).";
  return text;
}

void check_operands(const FunctionCall& call, const Ranks& ranks) {
  const Array &h = call[Place::h].data(), &W = call[Place::W].data(), &t = call[Place::t].data();
  const Array* b = call.optional(Place::b) ? &call[Place::b].data() : nullptr;
  const TypeOf in(h, "h"), w(W, "W"), labels(t, "t"), bias(b, "b");
  const Checks all(call.named(), in, w, bias, labels);
  const auto checks = all.advised([&] {
    const int64_t rows = W.ndim() > 0 ? W.shape()[0] : 0;
    return operands_advice(h, W, t, ranks ? ranks->classes : rows);
  });
  checks.require_float(in);
  checks.require(in.dtype() == w.dtype(), w.ndim() == 2, in.ndim() >= 1);
  if (!ranks) checks.require(w.shape(0) >= 1);
  checks.require(in.shape(h.ndim() - 1) == w.shape(1));
  if (t.dtype() != Dtype::kInt64) checks.require(labels.dtype() == Dtype::kInt32);
  checks.require(labels.ndim() == in.ndim() - 1);
  for (int i = 0; i < t.ndim(); ++i) checks.require(labels.shape(i) == in.shape(i));
  if (b == nullptr) return;
  all.advised([&] { return bias_advice(*b, W); })
      .require(bias.dtype() == w.dtype(), bias.ndim() == 1, bias.shape(0) == w.shape(0));
}

void check_loss_options(const FunctionCall& call, const Options& options) {
  const double s = options.label_smoothing;
  CATENA_CHECK(ValueError, s >= 0 && s < 1, call.label(),
               ": expected a label_smoothing of at least 0 and below 1, got ", s);
  check_not_negative(call, "z_loss", options.z_loss);
  CATENA_CHECK(ValueError, !options.chunk || *options.chunk > 0, call.label(),
               ": expected a chunk of at least one token, got ", *options.chunk,
               "; leave chunk out for the default");
}

constexpr const char* kLinearCrossEntropy = "LinearCrossEntropy";

// On a CPU alone: looking would wait for a GPU.
void check_labels_of(const FunctionCall& call, int64_t classes, const Options& options) {
  if (!call[Place::t].device().is_cpu()) return;
  const EntryScope named(call.name());
  Labels::check(call[Place::t].data(), classes, options.ignore_label);
}

}  // namespace

Variable linear_cross_entropy(FunctionCall& call, const Options& options, const Ranks& ranks) {
  check_operands(call, ranks);
  check_loss_options(call, options);
  call.require_one_device();
  const Variable &h = call[Place::h], &W = call[Place::W], &t = call[Place::t],
                 *b = call.optional(Place::b);
  if (!ranks) check_labels_of(call, W.shape()[0], options);
  Labels labels(t.data(), true, options.ignore_label);
  const Matrices m = matrices(h.data(), W.data(), b ? b->data() : Array(), labels.converted);
  const bool is_mean = options.reduction == Reduction::kMean,
             each = options.reduction == Reduction::kNone, recorded = call.is_recorded();
  Wanted wanted;
  if (recorded && !each)
    wanted = {h.requires_grad(), W.requires_grad(), b != nullptr && b->requires_grad()};
  const Array losses = Array::uninitialized(m.t.shape(), m.wide(), h.device());
  const Gradients gradients =
      ScoreChunks(call.name(), m, options, ranks.get()).run(losses, Array(), wanted);
  if (ranks) check_labels_of(call, ranks->classes, options);  // now that no other rank waits
  call.note_work([&] { return m.h.size() * m.classes() * (1 + wanted.h + wanted.W); });
  Array counted, divisor;
  if (is_mean) {
    counted = catena::sum(not_equal(m.t, options.ignore_label), {.dtype = m.wide()});
    divisor = catena::maximum(counted, 1.0);
  }
  Array loss = losses.reshape(t.shape());
  if (!each) loss = catena::sum(losses);
  if (is_mean) loss = loss / divisor;
  const Variable result = call.record(loss, [&] {
    const bool keeps_labels = labels.saved;
    if (keeps_labels) labels.converted = Array();
    auto node =
        make_node<LinearCrossEntropyNode>(call.name(), options, ranks, labels, divisor, gradients);
    node->save_input(Place::h, h);
    node->save_input(Place::W, W);
    if (keeps_labels) node->save_input(Place::t, t);
    if (b != nullptr) node->save_input(Place::b, *b);
    return node;
  });
  if (is_mean) declare_mean(result, {counted, static_cast<double>(t.data().size())});
  return result;
}

Variable linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                              const VariableOperand& t, const Options& options) {
  FunctionCall call(kLinearCrossEntropy, Autocast::kLow, h, W, t);
  return linear_cross_entropy(call, options, nullptr);
}

Variable linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                              const VariableOperand& b, const VariableOperand& t,
                              const Options& options) {
  FunctionCall call(kLinearCrossEntropy, Autocast::kLow, h, W, t, b);
  return linear_cross_entropy(call, options, nullptr);
}

}  // namespace catena::functions
