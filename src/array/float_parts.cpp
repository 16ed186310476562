// Works on the bits of IEEE numbers by integer views, so that no device's library decides.
#include "catena/array/float_parts.h"

#include "array/called_as.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"

namespace catena {
namespace {

// How a float is made of bits: sign, exponent, `mantissa` bits.
struct Format {
  Dtype bits;  // signed integer of the same width
  int mantissa;
  int64_t exponent_mask, bias;
};

Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return {Dtype::kInt16, 10, 0x1F, 15};
    case Dtype::kBFloat16:
      return {Dtype::kInt16, 7, 0xFF, 127};
    case Dtype::kFloat32:
      return {Dtype::kInt32, 23, 0xFF, 127};
    default:
      return {Dtype::kInt64, 52, 0x7FF, 1023};
  }
}

// As math.h promotes operands of float functions.
Dtype float_of(Dtype dtype) {
  if (is_float(dtype)) return dtype;
  switch (itemsize(dtype)) {
    case 1:
      return Dtype::kFloat16;
    case 2:
      return Dtype::kFloat32;
    default:
      return Dtype::kFloat64;
  }
}

Array as_float(const Array& x) { return x.astype(float_of(x.dtype()), false); }
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

std::pair<Array, Array> modf(const Array& x) try {
  const Array value = as_float(x), whole = trunc(value);
  const Array fraction = where(isinf(value), zeros_like(value), value - whole);
  return {copysign(fraction, value), whole};
} catch (const Error&) {
  rethrow_as("modf");
}

std::pair<Array, Array> frexp(const Array& x) try {
  const Array value = as_float(x);
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
  return {where(special, value, mantissa), where(special, zeros_like(exponent), exponent)};
} catch (const Error&) {
  rethrow_as("frexp");
}

Array ldexp(const Array& x, const Array& exponent) try {
  CATENA_CHECK(DtypeError, !is_float(exponent.dtype()),
               "ldexp: the exponent must be integers, got ", exponent.dtype(),
               "; convert it by astype");
  check_same_device("ldexp", x, exponent);
  const Dtype dtype = float_of(x.dtype());
  const Array value = x.astype(Dtype::kFloat64, false);
  if (dtype != Dtype::kFloat64) {
    // Exact in float64, whatever the exponent of the narrower type.
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
} catch (const Error&) {
  rethrow_as("ldexp");
}

Array nextafter(const Array& x1, const Array& x2) try {
  check_same_device("nextafter", x1, x2);
  const Dtype dtype = promote(float_of(x1.dtype()), float_of(x2.dtype()));
  const Array inputs[] = {x1.astype(dtype, false), x2.astype(dtype, false)};
  const std::vector<Array> both = broadcast_arrays(inputs);
  const Array &from = both[0], &to = both[1];
  // Bits counted so that neighbours differ by one and both zeros are 0. Integers wrap.
  const Dtype bits_dtype = format_of(dtype).bits;
  const int64_t lowest = bits_dtype == Dtype::kInt16   ? INT16_MIN
                         : bits_dtype == Dtype::kInt32 ? INT32_MIN
                                                       : INT64_MIN;
  const Array lowest_bits = scalar_array(lowest, {bits_dtype, x1.device()});
  const auto fold = [&](const Array& bits) {
    return where(bits < int64_t{0}, lowest_bits - bits, bits);
  };
  const Array step = (to > from).astype(bits_dtype) - (to < from).astype(bits_dtype);
  const Array place = fold(bits_of(from)) + step;
  const Array moved = fold(place).view(dtype);
  const Array next = where(place == int64_t{0}, copysign(zeros_like(moved), from), moved);
  return where(logical_or(isnan(from), isnan(to)), from + to, where(from == to, to, next));
} catch (const Error&) {
  rethrow_as("nextafter");
}

std::pair<Array, Array> divmod(const Operand& x1, const Operand& x2) try {
  return {floor_divide(x1, x2), remainder(x1, x2)};
} catch (const Error&) {
  rethrow_as("divmod");
}

}  // namespace catena
