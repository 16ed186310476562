#include "catena/core/dtype_info.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace catena {

const char* name(Casting casting) {
  constexpr const char* kNames[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
  return kNames[static_cast<int>(casting)];
}

namespace {

// NumPy's order of kinds: b < u < i < f.
int kind_rank(Dtype d) {
  return d == Dtype::kBool ? 0 : is_unsigned_int(d) ? 1 : is_signed_int(d) ? 2 : 3;
}

}  // namespace

bool can_cast(Dtype from, Dtype to, Casting casting) {
  switch (casting) {
    case Casting::kNo:
    case Casting::kEquiv: return from == to;
    case Casting::kSafe: return can_cast_safely(from, to);
    case Casting::kSameKind: return kind_rank(from) <= kind_rank(to);
    case Casting::kUnsafe: return true;
  }
  return false;
}

bool can_cast(const Scalar& value, Dtype to, Casting casting) {
  if (casting == Casting::kUnsafe) return true;
  if (casting == Casting::kNo || casting == Casting::kEquiv) return value.default_dtype() == to;
  return value.kind() <= kind_of(to) && value.fits(to);
}

Dtype min_scalar_type(const Scalar& value) {
  if (value.kind() == DtypeKind::kBool) return Dtype::kBool;
  if (value.kind() == DtypeKind::kFloat) {
    const double v = std::abs(value.to_double());
    if (!std::isfinite(v) || v < 65000) return Dtype::kFloat16;
    return v < 3.4e38 ? Dtype::kFloat32 : Dtype::kFloat64;
  }
  for (Dtype d : {Dtype::kUInt8, Dtype::kInt8, Dtype::kUInt16, Dtype::kInt16, Dtype::kUInt32,
                  Dtype::kInt32, Dtype::kUInt64}) {
    if (value.fits(d)) return d;
  }
  return Dtype::kInt64;
}

bool issubdtype(Dtype d, DtypeClass kind) {
  switch (kind) {
    case DtypeClass::kGeneric: return true;
    case DtypeClass::kBool: return d == Dtype::kBool;
    case DtypeClass::kNumber: return d != Dtype::kBool;
    case DtypeClass::kInteger: return is_int(d);
    case DtypeClass::kSignedInteger: return is_signed_int(d);
    case DtypeClass::kUnsignedInteger: return is_unsigned_int(d);
    case DtypeClass::kInexact:
    case DtypeClass::kFloating: return is_float(d);
  }
  return false;
}

char dtype_char(Dtype d) { return row_of(d).letter; }
char dtype_kind(Dtype d) { return "buif"[kind_rank(d)]; }
std::string dtype_code(Dtype d) { return row_of(d).array_code; }
const char* type_description(Dtype d) { return row_of(d).description; }

IntegerInfo iinfo(Dtype d) {
  CATENA_CHECK(DtypeError, is_int(d), "iinfo: expected an integer dtype, got ", d);
  const int bits = static_cast<int>(itemsize(d)) * 8;
  if (is_unsigned_int(d)) return {bits, 0, ~uint64_t{0} >> (64 - bits)};
  const uint64_t max = ~uint64_t{0} >> (65 - bits);
  return {bits, -static_cast<int64_t>(max) - 1, max};
}

namespace {

double value_of(Dtype d, uint64_t bits) {
  return visit_float("finfo", d, [&]<class T>(TypeTag<T>) {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return static_cast<double>(static_cast<compute_t<T>>(value));
  });
}

}  // namespace

FloatInfo finfo(Dtype d) {
  CATENA_CHECK(DtypeError, is_float(d), "finfo: expected a floating dtype, got ", d);
  FloatInfo f{};
  f.bits = static_cast<int>(itemsize(d)) * 8;
  f.mantissa_bits = row_of(d).mantissa_bits;
  f.exponent_bits = row_of(d).exponent_bits;
  f.eps = std::ldexp(1.0, -f.mantissa_bits);
  f.epsneg = f.eps / 2;
  // Numbers of at least 0 are in the order of their bits, with what is not finite at the end.
  uint64_t largest = 0;
  for (uint64_t bit = uint64_t{1} << (f.bits - 2); bit > 0; bit >>= 1)
    if (std::isfinite(value_of(d, largest | bit))) largest |= bit;
  f.max = value_of(d, largest);
  f.min = -f.max;
  f.tiny = value_of(d, uint64_t{1} << f.mantissa_bits);
  f.smallest_subnormal = value_of(d, 1);
  f.precision = static_cast<int>(f.mantissa_bits * std::log10(2.0));
  f.resolution = std::pow(10.0, -f.precision);
  return f;
}

std::string base_repr(int64_t number, int base, int padding) {
  CATENA_CHECK(ValueError, base >= 2 && base <= 36, "base_repr: expected a base of 2 to 36, got ",
               base);
  std::string digits;
  const bool negative = number < 0;
  uint64_t rest = negative ? uint64_t{0} - static_cast<uint64_t>(number) : uint64_t(number);
  for (; rest > 0; rest /= unsigned(base))
    digits += "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % unsigned(base)];
  if (digits.empty() && padding == 0) digits = "0";
  digits.append(size_t(std::max(padding, 0)), '0');
  if (negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string binary_repr(int64_t number, int width) {
  if (width == 0) return base_repr(number, 2);
  CATENA_CHECK(
      ValueError,
      width > 0 && (width > 64 || (number < 0 ? number >= -(int64_t{1} << (std::min(width, 64) - 1))
                                              : width > 63 || number < (int64_t{1} << width))),
      "binary_repr: ", number, " does not fit ", width, " digits");
  std::string digits;
  for (int i = 0; i < width; ++i) {
    const bool one = i < 64 ? (static_cast<uint64_t>(number) >> i & 1) != 0 : number < 0;
    digits += one ? '1' : '0';
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace catena
