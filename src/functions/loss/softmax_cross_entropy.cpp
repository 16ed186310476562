#include "catena/functions/loss.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/reduction.h"
#include "catena/core/memory_profile.h"
#include "catena/functions/activation.h"
#include "catena/functions/array.h"
#include "functions/advice.h"
#include "functions/labels.h"
#include "functions/support.h"

namespace catena::functions {
namespace {

using type_check::expect;

// Type in which sums of d are kept.
Dtype compute_dtype(Dtype d) { return d == Dtype::kFloat64 ? d : Dtype::kFloat32; }

// Saves x and the labels, keeps the log-sum-exp of each sample and the divisor.
class SoftmaxCrossEntropyNode final : public FunctionNode {
 public:
  SoftmaxCrossEntropyNode(const Array& lse, const Array& count, const Array& loss,
                          const Labels& labels)
      : lse_(lse), count_(count), loss_(loss), labels_(labels) {}
  std::string label() const override { return "SoftmaxCrossEntropy"; }

  void backward(BackwardContext& context) override {
    const Variable gloss = context.grad_output();
    if (!gloss.defined() || !context.needs(0)) return;
    const Variable x = context.input(0);
    const Array t = labels_.saved ? labels_.as_int32(context.input(1).data()) : labels_.converted;
    if (context.create_graph()) return context.set_grad(0, composed(x, t, gloss));
    const AxisView view(x.shape(), 1);
    const Array xs = view.of(x.data()), ts = t.reshape({view.outer, view.inner});
    give(context, 0, x.shape(), x.data(), [&](const Array& gx) {
      if (gx.size() == 0) return;
      const CrossEntropyCall call{&xs,   &ts,     labels_.ignore, labels_.normalize,
                                  &lse_, &count_, &loss_};
      kernels::softmax_cross_entropy_grad(gx.device(),
                                          {call, gloss.data(), gx.reshape(view.shape())});
    });
  }

 private:
  // (softmax(x) - onehot(t)) * mask / count * gloss
  Variable composed(const Variable& x, const Array& t, const Variable& gloss) const {
    Shape classes(size_t(x.ndim()), 1);
    classes[1] = x.shape()[1];
    const Array number = arange(x.shape()[1], {Dtype::kInt32, x.device()}).reshape(classes);
    const Array label = t.expand_dims(1);
    const Array onehot = equal(label, number).astype(x.dtype());
    // Without valid labels the divisor is 0, and so is the mask.
    const Array divisor = catena::maximum(count_, 1.0);
    const Array weight =
        (not_equal(label, labels_.ignore).astype(count_.dtype()) / divisor).astype(x.dtype());
    return (softmax(x, 1) - onehot) * weight * gloss;
  }

  Array lse_, count_, loss_;
  Labels labels_;
};

void check_cross_entropy(const Array& x, const Array& t) {
  bool fits = is_float(x.dtype()) && (t.dtype() == Dtype::kInt32 || t.dtype() == Dtype::kInt64) &&
              x.ndim() >= 2 && t.ndim() == x.ndim() - 1;
  for (int i = 0; fits && i < t.ndim(); ++i)
    fits = t.shape()[size_t(i)] == x.shape()[size_t(i == 0 ? 0 : i + 1)];
  if (fits) [[likely]]
    return;
  const auto check = [&](const TypeInfoTuple& in) {
    expect(in[0].dtype().kind() == 'f');
    if (t.dtype() != Dtype::kInt64) expect(in[1].dtype() == Dtype::kInt32);
    expect(in[0].ndim() >= 2);
    expect(in[1].ndim() == in[0].ndim() - type_check::constant(1));
    expect(in[0].shape(0) == in[1].shape(0));
    for (int i = 1; i < t.ndim(); ++i) expect(in[0].shape(i + 1) == in[1].shape(i));
  };
  refuse("SoftmaxCrossEntropy", {x, t}, check, label_advice("softmax_cross_entropy", x, t));
}

// Gradient (x0 - x1) * 2 gy / size and its negative; the difference is kept.
class MeanSquaredErrorNode final : public FunctionNode {
 public:
  explicit MeanSquaredErrorNode(const Array& difference) : difference_(difference) {}
  std::string label() const override { return "MeanSquaredError"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Variable scale =
        gy * (2.0 / static_cast<double>(std::max<int64_t>(difference_.size(), 1)));
    const Variable d = context.create_graph() ? context.input(0) - context.input(1)
                                              : Variable::constant(difference_);
    if (context.needs(0)) context.set_grad(0, d * scale);
    if (context.needs(1)) context.set_grad(1, d * negative(scale));
  }

 private:
  Array difference_;
};

// Gradient (sigmoid(x) - t) / count at the elements that count.
class SigmoidCrossEntropyNode final : public FunctionNode {
 public:
  SigmoidCrossEntropyNode(const Array& mask, const Array& t, const Array& inverse_count)
      : mask_(mask), t_(t), inverse_count_(inverse_count) {}
  std::string label() const override { return "SigmoidCrossEntropy"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined() || !context.needs(0)) return;
    const Variable g = (sigmoid(context.input(0)) - t_) * (gy * inverse_count_);
    context.set_grad(0, where(mask_, g, 0.0));
  }

 private:
  Array mask_, t_, inverse_count_;
};

void check_sigmoid_cross_entropy(const Array& x, const Array& t) {
  if (is_float(x.dtype()) && is_int(t.dtype()) && x.shape() == t.shape() && x.ndim() >= 1)
      [[likely]]
    return;
  const auto check = [&](const TypeInfoTuple& in) {
    expect(in[0].dtype().kind() == 'f');
    expect(in[1].dtype().kind() == 'i');
    expect(in[0].ndim() >= 1);
    expect(in[0].ndim() == in[1].ndim());
    for (int i = 0; i < x.ndim(); ++i) expect(in[0].shape(i) == in[1].shape(i));
  };
  const bool swapped = is_int(x.dtype()) && is_float(t.dtype());
  refuse(
      "SigmoidCrossEntropy", {x, t}, check,
      message("Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape; "
              "came ",
              x.dtype(), " of shape ", x.shape(), " and ", t.dtype(), " of shape ", t.shape(), ".",
              swapped ? " The arguments look swapped: it is sigmoid_cross_entropy(scores, labels)."
                      : ""));
}

}  // namespace

void Labels::check(const char* who, const Array& t, int64_t classes, int32_t ignore_label) {
  const Array labels = as_int32(t).to_cpu();
  const int32_t* values = labels.data<int32_t>();
  for (int64_t i = 0; i < labels.size(); ++i) {
    if ((values[i] >= 0 && values[i] < classes) || values[i] == ignore_label) [[likely]]
      continue;
    fail<ValueError>(who, ": label ", values[i], " at position ", i, " is outside [0, ", classes,
                     ") and not the ignored label ", ignore_label);
  }
}

void check_labels(const Array& t, int64_t classes, int32_t ignore_label) {
  Labels::check("softmax_cross_entropy", t, classes, ignore_label);
}

Variable softmax_cross_entropy(const VariableOperand& x_operand, const VariableOperand& t_operand,
                               YesNo normalize, int32_t ignore_label) {
  const Variable& x = x_operand.variable("softmax_cross_entropy");
  const Variable& t = t_operand.variable("softmax_cross_entropy");
  const CallScope scope("softmax_cross_entropy");
  check_cross_entropy(x.data(), t.data());
  check_same_device("softmax_cross_entropy", x.data(), t.data());
  Labels labels(t.data(), normalize, ignore_label);
  if (x.device().is_cpu()) check_labels(labels.converted, x.shape()[1], ignore_label);
  const AxisView view(x.shape(), 1);
  const Dtype sums = compute_dtype(x.dtype());
  const Array loss = Array::uninitialized({}, x.dtype(), x.device());
  const Array lse = Array::uninitialized({view.outer, view.inner}, sums, x.device());
  const Array count = Array::uninitialized({}, sums, x.device());
  if (lse.size() > 0 && x.size() > 0) {
    const Array xs = view.of(x.data()), ts = labels.converted.reshape({view.outer, view.inner});
    kernels::softmax_cross_entropy(
        x.device(), CrossEntropyCall{&xs, &ts, ignore_label, normalize, &lse, &count, &loss});
  } else {
    loss.fill(0.0);
    count.fill(0.0);
  }
  const Variable inputs[2] = {x, t};
  return record("softmax_cross_entropy", inputs, loss, [&] {
    if (labels.saved) labels.converted = Array();
    auto node = make_node<SoftmaxCrossEntropyNode>(lse, count, loss, labels);
    node->save_input(0, x);
    if (labels.saved) node->save_input(1, t);
    return node;
  });
}

Variable sigmoid_cross_entropy(const VariableOperand& x_operand, const VariableOperand& t_operand,
                               bool normalize, int32_t ignore_label) {
  const Variable& x = x_operand.variable("sigmoid_cross_entropy");
  const Variable& t = t_operand.variable("sigmoid_cross_entropy");
  check_sigmoid_cross_entropy(x.data(), t.data());
  const Array target = t.data().astype(x.dtype()), mask = not_equal(t.data(), ignore_label);
  const Dtype sums = compute_dtype(x.dtype());
  const double samples = static_cast<double>(std::max<int64_t>(x.shape()[0], 1));
  const Array count = normalize ? catena::maximum(catena::sum(mask.astype(sums)), 1.0)
                                : full({}, samples, {sums, x.device()});
  const Array inverse = catena::reciprocal(count).astype(x.dtype(), false);
  const Array each = catena::where(mask, catena::softplus(x.data()) - x.data() * target, 0.0);
  const Array loss = catena::sum(each) * inverse;
  const Variable inputs[2] = {x, t};
  return record("sigmoid_cross_entropy", inputs, loss, [&] {
    auto node = make_node<SigmoidCrossEntropyNode>(mask, target, inverse);
    node->save_input(0, x);
    return node;
  });
}

Variable mean_squared_error(const VariableOperand& operand0, const VariableOperand& operand1) {
  const Variable& x0 = operand0.variable("mean_squared_error");
  const Variable& x1 = operand1.variable("mean_squared_error");
  const CallScope scope("mean_squared_error");
  if (!is_float(x0.dtype()) || x0.dtype() != x1.dtype() || x0.shape() != x1.shape()) [[unlikely]] {
    const auto check = [&](const TypeInfoTuple& in) {
      expect(in[0].dtype().kind() == 'f');
      expect(in[1].dtype() == in[0].dtype());
      expect(in[0].ndim() == in[1].ndim());
      for (int i = 0; i < x0.ndim(); ++i) expect(in[0].shape(i) == in[1].shape(i));
    };
    refuse("MeanSquaredError", {x0.data(), x1.data()}, check,
           message("Expected are two of one floating dtype and shape; came ", x0.dtype(),
                   " of shape ", x0.shape(), " and ", x1.dtype(), " of shape ", x1.shape(),
                   x0.dtype() == x1.dtype() ? "." : ": convert one with .astype."));
  }
  const Array difference = x0.data() - x1.data();
  const Array total =
      Array::uninitialized(Shape(size_t(difference.ndim()), 1), x0.dtype(), x0.device());
  if (difference.size() > 0) {
    kernels::reduce(x0.device(), ReduceCall{ReduceOp::kSumOfSquares, &difference, &total,
                                            (1u << difference.ndim()) - 1});
  } else {
    total.fill(0.0);
  }
  const Array loss =
      total.reshape({}) * (1.0 / static_cast<double>(std::max<int64_t>(difference.size(), 1)));
  const Variable inputs[2] = {x0, x1};
  return record("mean_squared_error", inputs, loss, [&] {
    auto node = make_node<MeanSquaredErrorNode>(difference);
    node->save_input(0, x0);
    node->save_input(1, x1);
    return node;
  });
}

}  // namespace catena::functions
