// sigmoid_cross_entropy, of element-wise kernels and a sum.
#include "catena/functions/loss/sigmoid_cross_entropy.h"

#include "catena/array/creation.h"
#include "catena/array/elementwise.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "catena/kernels/elementwise_ops.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {
namespace {

// Gradient sign sigmoid(sign x) at the elements that count, divided by the count if there is one.
class SigmoidCrossEntropyNode final : public FunctionNode {
 public:
  // slope: the sign, times the weight of the element; inverse_count: null for 1.
  SigmoidCrossEntropyNode(const Array& mask, const Array& sign, const Array& slope,
                          const Array& inverse_count)
      : mask_(mask), sign_(sign), slope_(slope), inverse_count_(inverse_count) {}
  std::string label() const override { return "SigmoidCrossEntropy"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined() || !context.needs(0)) return;
    const Variable scale = cast(inverse_count_.defined() ? gy * inverse_count_ : gy, sign_.dtype());
    const Variable g = softplus_grad(scale * slope_, context.input(0) * sign_);
    context.set_grad(0, where(mask_, g, 0.0));
  }

 private:
  Array mask_, sign_, slope_, inverse_count_;
};

std::string sigmoid_cross_entropy_advice(const Array& x, const Array& t) {
  const char* hint = "";
  if (is_int(x.dtype()) && is_float(t.dtype()))
    hint = " The arguments look swapped: it is sigmoid_cross_entropy(scores, labels).";
  else if (!is_int(t.dtype()) && !is_float(t.dtype()))
    hint = " Convert the labels with .astype(dtype::int32).";
  return message(
      "Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape.", hint);
}

void check_sigmoid_cross_entropy(const FunctionCall& call) {
  const Array &x = call[0].data(), &t = call[1].data();
  const TypeOf scores(x, "x"), labels(t, "t");
  const auto checks = Checks(call.named(), scores, labels).advised([&] {
    return sigmoid_cross_entropy_advice(x, t);
  });
  checks.require_float(scores);
  if (is_float(t.dtype()))
    checks
        .advised([] {
          return "Expected are scores and labels of one shape. Convert labels 0 and 1 with "
                 ".astype(dtype::int32), probabilities with .astype(x.dtype()).";
        })
        .require(labels.dtype() == scores.dtype());
  else if (!is_unsigned_int(t.dtype()))
    checks.require(labels.kind() == 'i');
  checks.require(scores.ndim() >= 1, scores.ndim() == labels.ndim());
  for (int i = 0; i < x.ndim(); ++i) checks.require(scores.shape(i) == labels.shape(i));
}

// In the dtype, on x's device; it broadcasts to x.
Array positive_weight(const FunctionCall& call, const Array& weight, Dtype dtype) {
  const Array& x = call[0].data();
  CATENA_CHECK(ValueError, weight.defined(), call.label(), ": pos_weight is an undefined array");
  CATENA_CHECK(DtypeError, is_float(weight.dtype()), call.label(),
               ": expected a floating dtype for pos_weight, got ", weight.dtype());
  CATENA_CHECK(DeviceError, weight.device() == x.device(), call.label(), ": pos_weight is on ",
               weight.device().name(), ", the scores are on ", x.device().name(),
               "; move it with .to(x.device())");
  CATENA_CHECK(ValueError, broadcast_shapes(call.name(), x.shape(), weight.shape()) == x.shape(),
               call.label(), ": expected a pos_weight that broadcasts to ", x.shape(),
               ", got shape ", weight.shape());
  return weight.astype(dtype, false);
}

// Of probabilities.
Variable of_probabilities(const FunctionCall& call, const SigmoidCrossEntropyOptions& options) {
  const Variable x = widened(call[0]), t = widened(call[1]);
  Variable positive = t;
  if (options.pos_weight)
    positive = positive * positive_weight(call, *options.pos_weight, x.dtype());
  const Variable losses =
      weighted(positive, softplus(negative(x))) + weighted(1.0 - t, softplus(x));
  const Dtype dtype = call[0].dtype();
  if (options.normalize) return reduced(losses, options.reduction, dtype);
  return reduced(losses, options.reduction, dtype, sample_count(x));
}

}  // namespace

Variable sigmoid_cross_entropy(const VariableOperand& x, const VariableOperand& t, bool normalize,
                               int32_t ignore_label) {
  return sigmoid_cross_entropy(x, t, SigmoidCrossEntropyOptions{normalize, ignore_label});
}

Variable sigmoid_cross_entropy(const VariableOperand& x_operand, const VariableOperand& t_operand,
                               const SigmoidCrossEntropyOptions& options) {
  FunctionCall call("SigmoidCrossEntropy", Autocast::kFloat32, x_operand, t_operand);
  const Variable &x = call[0], &t = call[1];
  check_sigmoid_cross_entropy(call);
  if (is_float(t.dtype())) return of_probabilities(call, options);
  const Array mask = not_equal(t.data(), options.ignore_label);
  // softplus(x) - x t is softplus(-x) at t = 1, where the difference would lose all digits.
  const Array is_one = not_equal(t.data(), 0);
  const Array sign = elementwise(ops::where, {is_one, -1.0, 1.0}, Out(x.dtype()));
  Array slope = sign, losses = catena::softplus(x.data() * sign);
  if (options.pos_weight) {
    const Array weight =
        catena::where(is_one, positive_weight(call, *options.pos_weight, x.dtype()), 1.0);
    slope = slope * weight;
    losses = catena::where(weighs_nothing(weight, losses), 0.0, losses * weight);
  }
  losses = catena::where(mask, losses, 0.0);
  const Dtype sums = compute_dtype(x.dtype());
  Array loss = losses, inverse, counted;
  if (options.reduction != Reduction::kNone) {
    const Array total = catena::sum(losses, {.dtype = sums});
    loss = Array::uninitialized({}, x.dtype(), x.device());
    Out rounded(loss);
    rounded.dtype = sums;
    if (options.reduction == Reduction::kMean) {
      if (options.normalize) counted = catena::sum(mask.astype(sums));
      const Array count = options.normalize ? catena::maximum(counted, 1.0)
                                            : full({}, sample_count(x), {sums, x.device()});
      inverse = catena::reciprocal(count);
      catena::multiply(total, inverse, rounded);
    } else {
      catena::positive(total, rounded);
    }
  }
  const Variable result = call.record(loss, [&] {
    auto node = make_node<SigmoidCrossEntropyNode>(mask, sign, slope, inverse);
    node->save_input(0, x);
    return node;
  });
  if (counted.defined()) declare_mean(result, {counted, static_cast<double>(mask.size())});
  return result;
}

}  // namespace catena::functions
