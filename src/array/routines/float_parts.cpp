// Computes on the bits of IEEE numbers through integer views, so that results do not depend on a
// device's math library.
#include "catena/array/float_parts.h"

#include <bit>

#include "array/promotion.h"
#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/core/dtype_info.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// The bit layout of a float: sign, exponent, `mantissa` bits.
struct Format {
  Dtype bits;  // signed integer of the same width
  int mantissa;
  int64_t exponent_mask, bias;
};

Format format_of(Dtype dtype) {
  const DtypeRow& row = row_of(dtype);
  const int64_t exponent_mask = (int64_t{1} << row.exponent_bits) - 1;
  constexpr Dtype kBits[] = {Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kInt64};
  return {kBits[std::countr_zero(row.size)], row.mantissa_bits, exponent_mask, exponent_mask / 2};
}

// The operand as an array. A number becomes 0-d on the device of the other operand.
Array as_operand(const Operand& x, const Operand& other) {
  if (x.array()) return *x.array();
  const Device device = other.array() ? other.array()->device() : current_device();
  return scalar_array(x.scalar(), {x.scalar().default_dtype(), device});
}

// The compute dtype that the caller has chosen.
Dtype given_dtype(Dtype dtype, const Operand& x) {
  CATENA_CHECK(DtypeError, is_float(dtype), "computes in floating dtypes, got ", dtype);
  check_computable(x.array() ? x.array()->dtype() : x.scalar().default_dtype(), dtype);
  return dtype;
}

// The operand in the compute dtype.
Array as_float(const Operand& x, const std::optional<Dtype>& given) {
  const Array value = as_operand(x, x);
  return value.astype(given ? given_dtype(*given, x) : float_result(value.dtype()), false);
}

// The result, or *out holding it.
Array store(const Array& result, const Array* out) {
  if (out == nullptr) return result;
  check_defined(*out);
  check_storable(result.dtype(), out->dtype());
  return result_into(result, out);
}

// Both are checked before either is written.
std::pair<Array, Array> store(const Array& first, const Array& second, const OutPair& out) {
  for (const auto& [result, target] : {std::pair(&first, out.first), {&second, out.second}}) {
    if (target == nullptr) continue;
    check_defined(*target);
    check_storable(result->dtype(), target->dtype());
    CATENA_CHECK(ShapeError, target->shape() == result->shape(), "the output has shape ",
                 target->shape(), ", the result has ", result->shape());
    check_same_device(*result, *target);
    check_writable(*target);
  }
  return {store(first, out.first), store(second, out.second)};
}

Array bits_of(const Array& x) { return x.contiguous().view(format_of(x.dtype()).bits); }

// 2^n as float64, for int64 n of the normal range.
Array power_of_two(const Array& n) {
  return left_shift(n + int64_t{1023}, int64_t{52}).view(Dtype::kFloat64);
}

// A step of at most 1023 up or 969 down, which leaves 53 bits above the subnormal numbers.
Array bounded_step(const Array& n) {
  const Array zero = zeros_like(n);
  return where(n > int64_t{1023}, int64_t{1023}, where(n < int64_t{-1022}, int64_t{-969}, zero));
}

}  // namespace

std::pair<Array, Array> modf(const Operand& x, const OutPair& out) {
  const EntryScope call("modf");
  const Array value = as_float(x, out.dtype), whole = trunc(value);
  const Array fraction = where(isinf(value), zeros_like(value), value - whole);
  return store(copysign(fraction, value), whole, out);
}

std::pair<Array, Array> frexp(const Operand& x, const OutPair& out) {
  const EntryScope call("frexp");
  const Array value = as_float(x, out.dtype);
  const Format f = format_of(value.dtype());
  const auto exponent_of = [&](const Array& bits) {
    return bitwise_and(right_shift(bits, int64_t{f.mantissa}), f.exponent_mask);
  };
  // Subnormal numbers are made normal first.
  const int64_t lift = f.mantissa + 1;
  const Array raw = exponent_of(bits_of(value));
  const Array subnormal = raw == int64_t{0};
  const Array normal = where(subnormal, value * double(int64_t{1} << lift), value);
  const Array bits = bits_of(normal);
  const Array kept = bitwise_and(bits, ~(f.exponent_mask << f.mantissa));
  const Array mantissa = bitwise_or(kept, (f.bias - 1) << f.mantissa).view(value.dtype());
  const Array exponent = exponent_of(bits).astype(Dtype::kInt32) -
                         where(subnormal, int32_t(f.bias - 1 + lift),
                               full_like(raw, int32_t(f.bias - 1), Dtype::kInt32));
  const Array special = logical_or(value == 0.0, logical_not(isfinite(value)));
  return store(where(special, value, mantissa), where(special, zeros_like(exponent), exponent),
               out);
}

namespace {

// value * 2^exponent in `dtype`, rounded once; value is float64.
Array scaled(const Array& value, const Array& exponent, Dtype dtype) {
  if (dtype != Dtype::kFloat64) {
    // Exact in float64 for every exponent of the narrower type.
    const Array n = clip(exponent.astype(Dtype::kInt64, false), int64_t{-400}, int64_t{400});
    return (value * power_of_two(n)).astype(dtype);
  }
  Array n = clip(exponent.astype(Dtype::kInt64, false), int64_t{-2200}, int64_t{2200});
  Array result = value;
  for (int i = 0; i < 2; ++i) {
    const Array step = bounded_step(n);
    result = result * power_of_two(step);
    n = n - step;
  }
  return result * power_of_two(clip(n, int64_t{-1022}, int64_t{1023}));
}

}  // namespace

Array ldexp(const Operand& x, const Operand& exponent, const Out& out) {
  const EntryScope call("ldexp");
  refuse_mask(out);
  const Array from = as_operand(x, exponent), steps = as_operand(exponent, x);
  CATENA_CHECK(DtypeError, !is_float(steps.dtype()), "the exponent must be integers, got ",
               steps.dtype(), "; convert it by astype");
  check_same_device(from, steps);
  const Dtype dtype = out.dtype ? given_dtype(*out.dtype, x) : float_result(from.dtype());
  const Array value = from.astype(dtype, false).astype(Dtype::kFloat64, false);
  return store(scaled(value, steps, dtype), out.array);
}

namespace {

// The dtype in which neighbours are computed: a number takes the array's dtype.
Dtype common_float(const Operand& x1, const Operand& x2) {
  if (x1.array() && x2.array())
    return promote(float_result(x1.array()->dtype()), float_result(x2.array()->dtype()));
  if (!x1.array() && !x2.array())
    return promote(float_result(x1.scalar().default_dtype()),
                   float_result(x2.scalar().default_dtype()));
  const Operand &array = x1.array() ? x1 : x2, &number = x1.array() ? x2 : x1;
  return float_result(promote(array.array()->dtype(), number.scalar()));
}

// The number next to `from` in the direction of `to`; both have one floating dtype and shape.
Array neighbour(const Array& from, const Array& to, Dtype dtype) {
  // The bits as integers in which neighbours differ by one and both zeros are 0. Integers wrap.
  const Dtype bits_dtype = format_of(dtype).bits;
  const Array lowest_bits = scalar_array(iinfo(bits_dtype).min, {bits_dtype, from.device()});
  const auto fold = [&](const Array& bits) {
    return where(bits < int64_t{0}, lowest_bits - bits, bits);
  };
  const Array step = (to > from).astype(bits_dtype) - (to < from).astype(bits_dtype);
  const Array place = fold(bits_of(from)) + step;
  const Array moved = fold(place).view(dtype);
  const Array next = where(place == int64_t{0}, copysign(zeros_like(moved), from), moved);
  return where(logical_or(isnan(from), isnan(to)), from + to, where(from == to, to, next));
}

}  // namespace

Array nextafter(const Operand& x1, const Operand& x2, const Out& out) {
  const EntryScope call("nextafter");
  refuse_mask(out);
  const Array a = as_operand(x1, x2), b = as_operand(x2, x1);
  check_same_device(a, b);
  Dtype dtype;
  if (out.dtype) {
    dtype = given_dtype(*out.dtype, x1);
    given_dtype(*out.dtype, x2);
  } else {
    dtype = common_float(x1, x2);
  }
  const Array inputs[] = {a.astype(dtype, false), b.astype(dtype, false)};
  const std::vector<Array> both = broadcast_arrays(inputs);
  return store(neighbour(both[0], both[1], dtype), out.array);
}

std::pair<Array, Array> divmod(const Operand& x1, const Operand& x2, const OutPair& out) {
  const EntryScope call("divmod");
  const Out computed = out.dtype ? Out(*out.dtype) : Out();
  return store(floor_divide(x1, x2, computed), remainder(x1, x2, computed), out);
}

}  // namespace catena
