#include "catena/array/numeric.h"

#include <cmath>

#include "catena/array/casting.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"
#include "core/compute_dtype.h"

namespace catena {
namespace {

// An operand as an array of a dtype. A number is placed on the other operand's device.
Array as_dtype(const Operand& x, const Operand& other, Dtype dtype) {
  if (x.array()) return x.array()->astype(dtype, false);
  const Device device = other.array() ? other.array()->device() : current_device();
  return full({}, x.scalar(), {dtype, device});
}

// Writes a result into `out` if the caller gave one.
Array finish(const Array& result, const Out& out) {
  return out.array || out.dtype ? positive(result, out) : result;
}

// The most steps of Euclid's algorithm: n-bit numbers that need k steps are at least as large as
// the Fibonacci numbers k and k + 1.
int64_t euclid_steps(Dtype dtype) {
  return static_cast<int64_t>(std::ceil(8.0 * static_cast<double>(itemsize(dtype)) * 1.4405)) + 2;
}

// Magnitudes of the operands and their common divisor, unsigned: the magnitude of the lowest signed
// integer needs that.
struct Divisors {
  Array x, y, gcd;
  Dtype dtype;  // of the result
};

Dtype unsigned_dtype(Dtype d) {
  switch (itemsize(d)) {
    case 1: return Dtype::kUInt8;
    case 2: return Dtype::kUInt16;
    case 4: return Dtype::kUInt32;
    default: return Dtype::kUInt64;
  }
}

Divisors divide_commonly(const Operand& x1, const Operand& x2) {
  Dtype dtype = result_type({x1, x2});
  CATENA_CHECK(DtypeError, !is_float(dtype), "expected integers, got ", dtype);
  if (dtype == Dtype::kBool) dtype = Dtype::kInt8;
  if (x1.array() && x2.array()) check_same_device(*x1.array(), *x2.array());
  const Dtype bits = unsigned_dtype(dtype);
  Divisors d{absolute(as_dtype(x1, x2, dtype)).view(bits),
             absolute(as_dtype(x2, x1, dtype)).view(bits),
             {},
             dtype};
  const Shape shape = broadcast_shapes(d.x.shape(), d.y.shape());
  Array a = d.x.broadcast_to(shape), b = d.y.broadcast_to(shape);
  for (int64_t k = euclid_steps(dtype); k > 0; --k) {
    if (b.device().is_cpu() && !any(b).item<bool>()) break;
    const Array rest = remainder(a, b);  // 0 where b is 0
    a = where(not_equal(b, 0), b, a);
    b = rest;
  }
  d.gcd = a;
  return d;
}

}  // namespace

Array round(const Array& x, int64_t decimals, const Out& out) {
  const EntryScope call("round");
  const bool whole = is_int(x.dtype());
  if (decimals == 0 && !whole) return rint(x, out);
  if (decimals >= 0 && whole) return positive(x, out);
  const double unit = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  const Array scaled = decimals > 0 ? multiply(x, unit) : divide(x, unit);
  const Array steps = rint(scaled);
  const Array result = decimals > 0 ? divide(steps, unit) : multiply(steps, unit);
  return finish(whole ? result.astype(x.dtype()) : result, out);
}
Array around(const Array& x, int64_t decimals, const Out& out) {
  const EntryScope call("around");
  return round(x, decimals, out);
}

Array nan_to_num(const Array& x, double nan, std::optional<double> posinf,
                 std::optional<double> neginf) {
  const EntryScope call("nan_to_num");
  if (!is_float(x.dtype())) return x.copy();
  const FloatInfo info = finfo(x.dtype());
  const Array low = where(equal(x, -HUGE_VAL), neginf.value_or(info.min), x),
              high = where(equal(x, HUGE_VAL), posinf.value_or(info.max), low);
  return where(isnan(x), nan, high);
}

Array float_power(const Operand& x1, const Operand& x2) {
  const EntryScope call("float_power");
  if (x1.array() && x2.array()) check_same_device(*x1.array(), *x2.array());
  const Array base = as_dtype(x1, x2, Dtype::kFloat64),
              exponent = as_dtype(x2, x1, Dtype::kFloat64);
  broadcast_shapes(base.shape(), exponent.shape());
  return power(base, exponent);
}

Array fix(const Array& x, const Out& out) {
  const EntryScope call("fix");
  return trunc(x, out);
}

Array sinc(const Array& x) {
  const EntryScope call("sinc");
  const Dtype dtype = is_float(x.dtype()) ? x.dtype() : Dtype::kFloat64;
  const Array floats = x.astype(compute_dtype(dtype), false);
  const Array angle = multiply(where(equal(floats, 0), 1.0, floats), M_PI);
  return where(equal(floats, 0), 1.0, divide(sin(angle), angle)).astype(dtype, false);
}

Array isposinf(const Array& x) {
  const EntryScope call("isposinf");
  return equal(x, HUGE_VAL);
}
Array isneginf(const Array& x) {
  const EntryScope call("isneginf");
  return equal(x, -HUGE_VAL);
}

Array heaviside(const Operand& x, const Operand& at_zero) {
  const EntryScope call("heaviside");
  const Dtype dtype = float_result(result_type({x, at_zero}));
  if (x.array() && at_zero.array()) check_same_device(*x.array(), *at_zero.array());
  const Array a = as_dtype(x, at_zero, dtype), middle = as_dtype(at_zero, x, dtype);
  const Array step = where(greater(a, 0), 1.0, where(less(a, 0), 0.0, middle));
  return where(isnan(a), a, step);
}

Array gcd(const Operand& x1, const Operand& x2) {
  const EntryScope call("gcd");
  const Divisors d = divide_commonly(x1, x2);
  return d.gcd.astype(d.dtype, false);
}

Array lcm(const Operand& x1, const Operand& x2) {
  const EntryScope call("lcm");
  const Divisors d = divide_commonly(x1, x2);
  const Array multiple = multiply(floor_divide(d.x, d.gcd), d.y);  // a quotient by 0 is 0
  return multiple.astype(d.dtype, false);
}

}  // namespace catena
