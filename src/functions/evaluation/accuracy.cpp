#include "catena/functions/evaluation.h"
#include "catena/core/memory_profile.h"

#include "functions/advice.h"
#include "functions/labels.h"
#include "functions/support.h"

namespace catena::functions {
namespace {

using type_check::expect;

// y's axes behind the classes without the trailing ones that t lacks.
bool fits(const Array& y, const Array& t) {
  if (!is_float(y.dtype()) || (t.dtype() != Dtype::kInt32 && t.dtype() != Dtype::kInt64))
    return false;
  if (y.ndim() < 2 || t.ndim() < 1 || t.ndim() > y.ndim() - 1 || y.shape()[0] != t.shape()[0])
    return false;
  for (int i = 2; i < y.ndim(); ++i) {
    if (y.shape()[size_t(i)] != (i - 1 < t.ndim() ? t.shape()[size_t(i - 1)] : 1)) return false;
  }
  return true;
}

}  // namespace

Variable accuracy(const VariableOperand& y_operand, const VariableOperand& t_operand,
                  std::optional<int32_t> ignore_label) {
  const Variable& y = y_operand.variable("accuracy");
  const Variable& t = t_operand.variable("accuracy");
  if (!fits(y.data(), t.data())) [[unlikely]] {
    const auto check = [&](const TypeInfoTuple& in) {
      expect(in[0].dtype().kind() == 'f');
      if (t.dtype() != Dtype::kInt64) expect(in[1].dtype() == Dtype::kInt32);
      expect(in[0].ndim() >= 2);
      expect(in[1].ndim() >= 1);
      expect(in[1].ndim() <= in[0].ndim() - type_check::constant(1));
      expect(in[0].shape(0) == in[1].shape(0));
      for (int i = 2; i < y.ndim(); ++i) {
        if (i - 1 < t.ndim())
          expect(in[0].shape(i) == in[1].shape(i - 1));
        else
          expect(in[0].shape(i) == 1);
      }
    };
    refuse("Accuracy", {y.data(), t.data()}, check, label_advice("accuracy", y.data(), t.data()));
  }
  const CallScope scope("accuracy");
  check_same_device("accuracy", y.data(), t.data());
  const AxisView view(y.shape(), 1);
  const Array labels = Labels::as_int32(t.data()).reshape({view.outer, view.inner});
  if (y.device().is_cpu())
    Labels::check("accuracy", labels, y.shape()[1], ignore_label.value_or(-1));
  const Dtype dtype = y.dtype() == Dtype::kFloat64 ? y.dtype() : Dtype::kFloat32;
  const Array result = Array::uninitialized({}, dtype, y.device());
  if (y.size() == 0)
    result.fill(0.0);
  else
    kernels::accuracy(y.device(), {view.of(y.data()), labels, ignore_label.has_value(),
                                   ignore_label.value_or(-1), result});
  const Variable inputs[2] = {y, t};
  return unrecorded(inputs, result);
}

}  // namespace catena::functions
