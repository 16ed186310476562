// dropout: a mask that forward and backward draw from the same bits.
#include "catena/functions/noise/dropout.h"

#include "array/memory_order.h"
#include "catena/array/random.h"
#include "catena/autograd/linear_map.h"
#include "catena/kernels/random.h"
#include "functions/common/checks.h"

namespace catena::functions {
namespace {

void check_ratio(double ratio) {
  CATENA_CHECK(ValueError, ratio >= 0 && ratio < 1, "Dropout: expected a ratio of [0, 1), got ",
               ratio);
}

// Its own adjoint: the gradient is the same call on gy, with the same bits for the same elements.
// The bits belong to the elements in the order of memory.
struct Mask {
  static constexpr const char* kName = "Dropout";
  double ratio;
  RandomBits bits;
  MemoryOrder order;
  Array forward(const Array& x) const {
    const Array source = in_order(x, order).contiguous();
    const Array y = Array::uninitialized(x.shape(), x.dtype(), x.device(), order);
    const Array target = in_order(y, order);
    if (y.size() > 0) kernels::dropout(y.device(), {source, ratio, 1 / (1 - ratio), bits, target});
    return y;
  }
  Array adjoint(const Array& gy) const { return forward(gy); }
};

}  // namespace

Variable dropout(const VariableOperand& operand, std::optional<double> asked, YesNo train) {
  const double ratio = asked.value_or(0.5);
  check_ratio(ratio);
  if (!train || ratio == 0) return operand.variable(Mask::kName);
  FunctionCall call(Mask::kName, Autocast::kNone, operand);
  const Variable& x = call[0];
  const TypeOf in(x.data(), "x");
  Checks(call.named(), in).require_float(in);
  const RandomBits bits =
      random::default_state(x.device()).reserve(static_cast<uint64_t>(x.size()), x.device());
  const MemoryOrder order = x.data().is_dense() ? x.data().order() : MemoryOrder();
  return linear_map(call, Mask{ratio, bits, order});
}

Dropout::Dropout(double ratio) : ratio_(ratio) { check_ratio(ratio); }

Variable Dropout::operator()(const VariableOperand& x, std::optional<YesNo> train) const {
  return dropout(x, ratio_, train.value_or(training()));
}

void Dropout::visit_parameters(const Visitor&, const std::string&) {}

}  // namespace catena::functions
