// softmax_cross_entropy: one kernel each way, which keeps a number a sample.
#include "catena/functions/loss/softmax_cross_entropy.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/core/entry_scope.h"
#include "catena/functions/activation/softmax.h"
#include "catena/kernels/loss.h"
#include "functions/common/advice.h"
#include "functions/common/labels.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Saves x and the labels, keeps two numbers of each sample (see kernels/loss.h) and the divisor.
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

void check_types(const FunctionCall& call) {
  const Array &x = call[0].data(), &t = call[1].data();
  const TypeOf scores(x, "x"), labels(t, "t");
  const auto checks = Checks(call.named(), scores, labels).advised([&] {
    return label_advice("softmax_cross_entropy(scores, labels)", x, t);
  });
  checks.require_float(scores);
  if (t.dtype() != Dtype::kInt64) checks.require(labels.dtype() == Dtype::kInt32);
  checks.require(scores.ndim() >= 2, labels.ndim() == scores.ndim() - 1,
                 scores.shape(0) == labels.shape(0));
  for (int i = 1; i < t.ndim(); ++i) checks.require(scores.shape(i + 1) == labels.shape(i));
}

}  // namespace

void check_labels(const Array& t, int64_t classes, int32_t ignore_label) {
  const EntryScope call("SoftmaxCrossEntropy");
  Labels::check(t, classes, ignore_label);
}

Variable softmax_cross_entropy(const VariableOperand& x_operand, const VariableOperand& t_operand,
                               YesNo normalize, int32_t ignore_label) {
  FunctionCall call("SoftmaxCrossEntropy", Autocast::kFloat32, x_operand, t_operand);
  const Variable &x = call[0], &t = call[1];
  check_types(call);
  call.require_one_device();
  if (x.device().is_cpu()) check_labels(t.data(), x.shape()[1], ignore_label);
  Labels labels(t.data(), normalize, ignore_label);
  const AxisView view(x.shape(), 1);
  const Dtype sums = compute_dtype(x.dtype());
  const Array loss = Array::uninitialized({}, x.dtype(), x.device());
  const Array lse = Array::uninitialized({2, view.outer, view.inner}, sums, x.device());
  const Array count = Array::uninitialized({}, sums, x.device());
  if (lse.size() > 0 && x.size() > 0) {
    const Array xs = view.of(x.data()), ts = labels.converted.reshape({view.outer, view.inner});
    kernels::softmax_cross_entropy(
        x.device(), CrossEntropyCall{&xs, &ts, ignore_label, normalize, &lse, &count, &loss});
  } else {
    loss.fill(0.0);
    count.fill(0.0);
  }
  return call.record(loss, [&] {
    if (labels.saved) labels.converted = Array();
    auto node = make_node<SoftmaxCrossEntropyNode>(lse, count, loss, labels);
    node->save_input(0, x);
    if (labels.saved) node->save_input(1, t);
    return node;
  });
}

}  // namespace catena::functions
