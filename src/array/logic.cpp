#include "catena/array/logic.h"

#include <algorithm>

#include "catena/array/casting.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"

namespace catena {

Array isclose(const Operand& first, const Operand& second, std::optional<double> rtol,
              std::optional<double> atol, bool equal_nan) {
  const EntryScope call("isclose");
  const Dtype common = result_type({first, second});
  const Dtype d = is_float(common) ? common : Dtype::kFloat64;
  // A number is placed on the device of the array with which it is compared.
  const Array* given = first.array() ? first.array() : second.array();
  const Device device = given ? given->device() : current_device();
  auto as_array = [&](const Operand& operand) {
    return operand.array() ? *operand.array() : full({}, operand.scalar(), {d, device});
  };
  const Array x = as_array(first), y = as_array(second);
  // Infinite differences and bounds are ignored: those elements are compared directly.
  const Array distance = absolute(subtract(x, y, d)),
              bound = add(multiply(absolute(y, d), rtol.value_or(1e-5)), atol.value_or(1e-8));
  const Array within =
      logical_and(less_equal(distance, bound), logical_and(isfinite(x, d), isfinite(y, d)));
  const Array close = logical_or(within, equal(x, y));
  return equal_nan ? logical_or(close, logical_and(isnan(x, d), isnan(y, d))) : close;
}

bool allclose(const Operand& x, const Operand& y, std::optional<double> rtol,
              std::optional<double> atol, bool equal_nan) {
  const EntryScope call("allclose");
  return all(isclose(x, y, rtol, atol, equal_nan)).item<bool>();
}

bool array_equal(const Array& x, const Array& y, bool equal_nan) {
  const EntryScope call("array_equal");
  if (x.shape() != y.shape()) return false;
  Array same = equal(x, y);
  if (equal_nan && is_float(x.dtype()) && is_float(y.dtype()))
    same = logical_or(same, logical_and(isnan(x), isnan(y)));
  return all(same).item<bool>();
}

bool array_equiv(const Array& x, const Array& y) {
  const EntryScope call("array_equiv");
  const int ndim = std::max(x.ndim(), y.ndim());
  for (int k = 1; k <= ndim; ++k) {
    const int64_t a = k <= x.ndim() ? x.shape(-k) : 1, b = k <= y.ndim() ? y.shape(-k) : 1;
    if (a != b && a != 1 && b != 1) return false;
  }
  return all(equal(x, y)).item<bool>();
}

}  // namespace catena
