// sigmoid_cross_entropy, of element-wise kernels and a sum.
#include "catena/functions/loss/sigmoid_cross_entropy.h"

#include "catena/array/creation.h"
#include "catena/array/elementwise.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/functions/array/cast.h"
#include "catena/kernels/elementwise_ops.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Gradient sign sigmoid(sign x) / count at the elements that count.
class SigmoidCrossEntropyNode final : public FunctionNode {
 public:
  SigmoidCrossEntropyNode(const Array& mask, const Array& sign, const Array& inverse_count)
      : mask_(mask), sign_(sign), inverse_count_(inverse_count) {}
  std::string label() const override { return "SigmoidCrossEntropy"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined() || !context.needs(0)) return;
    const Variable scale = cast(gy * inverse_count_, sign_.dtype());
    const Variable g = softplus_grad(scale * sign_, context.input(0) * sign_);
    context.set_grad(0, where(mask_, g, 0.0));
  }

 private:
  Array mask_, sign_, inverse_count_;
};

std::string advice(const Array& x, const Array& t) {
  const char* hint = "";
  if (is_int(x.dtype()) && is_float(t.dtype()))
    hint = " The arguments look swapped: it is sigmoid_cross_entropy(scores, labels).";
  else if (!is_int(t.dtype()))
    hint = " Convert the labels with .astype(dtype::int32).";
  return message(
      "Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape.", hint);
}

void check_types(const FunctionCall& call) {
  const Array &x = call[0].data(), &t = call[1].data();
  const TypeOf scores(x, "x"), labels(t, "t");
  const auto checks = Checks(call.named(), scores, labels).advised([&] { return advice(x, t); });
  checks.require_float(scores);
  if (!is_unsigned_int(t.dtype())) checks.require(labels.kind() == 'i');
  checks.require(scores.ndim() >= 1, scores.ndim() == labels.ndim());
  for (int i = 0; i < x.ndim(); ++i) checks.require(scores.shape(i) == labels.shape(i));
}

}  // namespace

Variable sigmoid_cross_entropy(const VariableOperand& x_operand, const VariableOperand& t_operand,
                               bool normalize, int32_t ignore_label) {
  FunctionCall call("SigmoidCrossEntropy", Autocast::kFloat32, x_operand, t_operand);
  const Variable &x = call[0], &t = call[1];
  check_types(call);
  const Array mask = not_equal(t.data(), ignore_label);
  // softplus(x) - x t is softplus(-x) at t = 1, where the difference would lose all digits.
  const Array sign = elementwise(ops::where, {not_equal(t.data(), 0), -1.0, 1.0}, Out(x.dtype()));
  const Dtype sums = compute_dtype(x.dtype());
  const double samples = static_cast<double>(std::max<int64_t>(x.shape()[0], 1));
  const Array count = normalize ? catena::maximum(catena::sum(mask.astype(sums)), 1.0)
                                : full({}, samples, {sums, x.device()});
  const Array inverse = catena::reciprocal(count);
  const Array each = catena::where(mask, catena::softplus(x.data() * sign), 0.0);
  const Array loss = Array::uninitialized({}, x.dtype(), x.device());
  Out rounded(loss);
  rounded.dtype = sums;
  catena::multiply(catena::sum(each, {.dtype = sums}), inverse, rounded);
  return call.record(loss, [&] {
    auto node = make_node<SigmoidCrossEntropyNode>(mask, sign, inverse);
    node->save_input(0, x);
    return node;
  });
}

}  // namespace catena::functions
