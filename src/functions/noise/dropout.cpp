// dropout: a mask that forward and backward draw from the same bits.
#include "catena/functions/noise/dropout.h"

#include "catena/array/random.h"
#include "catena/core/memory_profile.h"
#include "catena/kernels/random.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

Variable apply_dropout(const Variable& x, double ratio, const RandomBits& bits);

void check_ratio(double ratio) {
  CATENA_CHECK(ValueError, ratio >= 0 && ratio < 1, "dropout: expected a ratio of [0, 1), got ",
               ratio);
}

// Saves nothing: the gradient is the same call, with the same bits, on gy.
class DropoutNode final : public FunctionNode {
 public:
  DropoutNode(double ratio, const RandomBits& bits) : ratio_(ratio), bits_(bits) {}
  std::string label() const override { return "Dropout"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, apply_dropout(gy, ratio_, bits_));
  }

 private:
  double ratio_;
  RandomBits bits_;
};

Variable apply_dropout(const Variable& x, double ratio, const RandomBits& bits) {
  const Array source = x.data().contiguous();
  const CallScope scope("dropout");
  const Array y = Array::uninitialized(x.shape(), x.dtype(), x.device());
  if (y.size() > 0) kernels::dropout(y.device(), {source, ratio, 1 / (1 - ratio), bits, y});
  return record("dropout", x, y, [&] { return make_node<DropoutNode>(ratio, bits); });
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
  return apply_dropout(x, ratio, bits);
}

Dropout::Dropout(double ratio) : ratio_(ratio) { check_ratio(ratio); }

Variable Dropout::operator()(const VariableOperand& x, std::optional<YesNo> train) const {
  return dropout(x, ratio_, train.value_or(training()));
}

void Dropout::visit_parameters(const Visitor&, const std::string&) {}

}  // namespace catena::functions
