// select_item: a gather along the rows, whose adjoint writes one element of each.
#include "catena/functions/array/select_item.h"

#include <limits>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/kernels/index.h"
#include "functions/common/indexed_map.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// From (n, classes) to the elements t of the rows.
struct Selection {
  static constexpr const char* kName = "SelectItem";
  Array t;      // (n), int32 or int64, contiguous
  Array valid;  // (n) bool: whether t is a class; undefined: all are

  Array forward(const Array& x) const {
    const Array y = Array::uninitialized(t.shape(), x.dtype(), x.device());
    if (y.size() == 0) return y;
    if (x.shape()[1] == 0) {
      y.fill(std::numeric_limits<double>::quiet_NaN());
      return y;
    }
    run(kernels::gather, y, x);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return valid.defined() ? catena::where(valid, y, nan) : y;
  }
  void adjoint(const Array& gy, const Array& gx, bool accumulate) const {
    if (!accumulate) gx.fill(0.0);
    if (gx.size() == 0) return;
    Array values = valid.defined() ? catena::where(valid, gy, 0.0) : gy.contiguous();
    if (accumulate) {
      const Array before = Array::uninitialized(gy.shape(), gy.dtype(), gy.device());
      run(kernels::gather, before, gx);
      values = before + values;
    }
    run(kernels::scatter, values, gx);
  }

 private:
  // Positions outside are moved inside: nothing else is read or written.
  template <class Slot>
  void run(Slot& slot, const Array& values, const Array& x) const {
    const Array rows = x(Slice(), 0);
    SelectCall call{};
    call.values = &values;
    call.base = &rows;
    call.count = 1;
    call.positions[0] = &t;
    call.extents[0] = x.shape()[1];
    call.strides[0] = x.strides()[1];
    call.mode = static_cast<uint8_t>(OutOfRange::kClip);
    slot(x.device(), call);
  }
};

std::string select_item_advice(const Array& x, const Array& t) {
  if (is_int(x.dtype()) && is_float(t.dtype()))
    return "The arguments look swapped: it is select_item(x, t).";
  if (!is_int(t.dtype())) return "Convert t with .astype(dtype::int32).";
  return "Expected are x (n, classes) and t (n), a class for each row.";
}

void check_select_item(const FunctionCall& call) {
  const Array &x = call[0].data(), &t = call[1].data();
  const TypeOf in(x, "x"), labels(t, "t");
  const Checks checks(call.named(), in, labels);
  const auto advised = checks.advised([&] { return select_item_advice(x, t); });
  if (!is_int(t.dtype())) advised.require(labels.dtype() == Dtype::kInt32);
  checks.require_float(in);
  advised.require(in.ndim() == 2, labels.ndim() == 1, labels.shape(0) == in.shape(0));
}

template <class T>
void check_values(const FunctionCall& call, const Array& t, int64_t classes) {
  const T* values = t.data<T>();
  for (int64_t i = 0; i < t.size(); ++i) {
    CATENA_CHECK(ValueError, values[i] >= 0 && values[i] < classes, call.label(), ": t is ",
                 values[i], " at position ", i, ", outside [0, ", classes, ")");
  }
}

// Checked on a CPU, marked on a GPU.
Selection selection_of(const FunctionCall& call) {
  const Array& t = call[1].data();
  const int64_t classes = call[0].shape()[1];
  const bool direct = t.dtype() == Dtype::kInt32 || t.dtype() == Dtype::kInt64;
  Selection s{direct ? t.contiguous() : t.astype(Dtype::kInt64).contiguous(), {}};
  if (!t.device().is_cpu())
    s.valid = catena::equal(s.t, catena::clip(s.t, 0, std::max<int64_t>(classes - 1, 0)));
  else if (s.t.dtype() == Dtype::kInt32)
    check_values<int32_t>(call, s.t, classes);
  else
    check_values<int64_t>(call, s.t, classes);
  return s;
}

}  // namespace

Variable select_item(const VariableOperand& x_operand, const VariableOperand& t_operand) {
  FunctionCall call(Selection::kName, Autocast::kNone, x_operand, t_operand);
  check_select_item(call);
  call.require_one_device();
  const Selection selection = selection_of(call);
  return indexed_map(call, selection, 0, 1, selection.t);
}

}  // namespace catena::functions
