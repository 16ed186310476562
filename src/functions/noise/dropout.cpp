// dropout: a mask that forward and backward draw from the same bits.
#include "catena/functions/noise/dropout.h"

#include "array/memory_order.h"
#include "catena/array/random.h"
#include "catena/core/memory_profile.h"
#include "catena/kernels/random.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

Variable apply_dropout(const Variable& x, double ratio, const RandomBits& bits,
                       const MemoryOrder& order);

void check_ratio(double ratio) {
  CATENA_CHECK(ValueError, ratio >= 0 && ratio < 1, "dropout: expected a ratio of [0, 1), got ",
               ratio);
}

// Saves nothing: the gradient is the same call on gy, with the same bits for the same elements.
class DropoutNode final : public FunctionNode {
 public:
  DropoutNode(double ratio, const RandomBits& bits, const MemoryOrder& order)
      : ratio_(ratio), bits_(bits), order_(order) {}
  std::string label() const override { return "Dropout"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, apply_dropout(gy, ratio_, bits_, order_));
  }

 private:
  double ratio_;
  RandomBits bits_;
  MemoryOrder order_;
};

// The bits belong to the elements in the order in which they lie in memory.
Variable apply_dropout(const Variable& x, double ratio, const RandomBits& bits,
                       const MemoryOrder& order) {
  const Array source = in_order(x.data(), order).contiguous();
  const CallScope scope("dropout");
  const Array y = Array::uninitialized(x.shape(), x.dtype(), x.device(), order);
  const Array target = in_order(y, order);
  if (y.size() > 0) kernels::dropout(y.device(), {source, ratio, 1 / (1 - ratio), bits, target});
  return record("dropout", x, y, [&] { return make_node<DropoutNode>(ratio, bits, order); });
}

}  // namespace

Variable dropout(const VariableOperand& operand, std::optional<double> asked, YesNo train) {
  const double ratio = asked.value_or(0.5);
  check_ratio(ratio);
  const Variable& x = operand.variable("dropout");
  if (!train) return x;
  const TypeOf in(x.data(), "x");
  Checks("Dropout", in).require_float(in);
  const RandomBits bits =
      random::default_state(x.device()).reserve(static_cast<uint64_t>(x.size()), x.device());
  const MemoryOrder order = x.data().is_dense() ? x.data().order() : MemoryOrder();
  return apply_dropout(x, ratio, bits, order);
}

Dropout::Dropout(double ratio) : ratio_(ratio) { check_ratio(ratio); }

Variable Dropout::operator()(const VariableOperand& x, std::optional<YesNo> train) const {
  return dropout(x, ratio_, train.value_or(training()));
}

void Dropout::visit_parameters(const Visitor&, const std::string&) {}

}  // namespace catena::functions
