// Numbers of the program: what they fit, and what they make of dtypes.
#include "catena/core/scalar.h"

#include <cmath>
#include <limits>
#include <ostream>

#include "catena/core/dtype_info.h"
#include "core/error_name.h"

namespace catena {

Dtype Scalar::default_dtype() const {
  switch (kind_) {
    case Kind::kBool: return Dtype::kBool;
    case Kind::kFloat: return Dtype::kFloat64;
    case Kind::kUInt:
      return bits_.u > uint64_t(std::numeric_limits<int64_t>::max()) ? Dtype::kUInt64
                                                                     : Dtype::kInt64;
    case Kind::kInt: return Dtype::kInt64;
  }
  return Dtype::kInt64;
}

double Scalar::to_double() const {
  switch (kind_) {
    case Kind::kFloat: return bits_.d;
    case Kind::kUInt: return static_cast<double>(bits_.u);
    default: return static_cast<double>(bits_.i);
  }
}

int64_t Scalar::to_int64() const {
  if (kind_ == Kind::kFloat) {
    CATENA_CHECK(ValueError, bits_.d >= -0x1p63 && bits_.d < 0x1p63, "Scalar: ", bits_.d,
                 " does not fit int64");
    return static_cast<int64_t>(bits_.d);
  }
  return bits_.i;
}

bool Scalar::to_bool() const { return kind_ == Kind::kFloat ? bits_.d != 0 : bits_.u != 0; }

bool Scalar::fits(Dtype d) const {
  if (kind() == DtypeKind::kFloat || kind() == DtypeKind::kBool || is_float(d)) return true;
  const bool large =
      kind_ == Kind::kUInt && bits_.u > uint64_t(std::numeric_limits<int64_t>::max());
  if (d == Dtype::kBool) return !large && (bits_.i == 0 || bits_.i == 1);
  const int bits = static_cast<int>(itemsize(d)) * 8;
  if (is_signed_int(d)) {
    if (large) return false;
    return bits == 64 ||
           (bits_.i >= -(int64_t{1} << (bits - 1)) && bits_.i < (int64_t{1} << (bits - 1)));
  }
  if (kind_ == Kind::kInt && bits_.i < 0) return false;
  return bits == 64 || bits_.u < (uint64_t{1} << bits);
}

std::string to_string(const Scalar& value) {
  if (value.kind() == DtypeKind::kBool) return value.to_bool() ? "true" : "false";
  if (value.kind() == DtypeKind::kFloat) return message(value.to_double());
  return value.default_dtype() == Dtype::kUInt64 ? message(value.to<uint64_t>())
                                                 : message(value.to_int64());
}

std::ostream& operator<<(std::ostream& os, const Scalar& value) { return os << to_string(value); }

namespace {

// " (-128 to 127)"
std::string range_of(Dtype d) {
  const IntegerInfo limits = iinfo(d);
  return message(" (", limits.min, " to ", limits.max, ")");
}

[[noreturn, gnu::cold]] void fail_promotion(const Scalar& value, Dtype d) {
  const ErrorName name("promote");
  fail<ValueError>("integer ", value, " is out of bounds for ", d, range_of(d),
                   "; give the array a wider dtype with astype");
}

}  // namespace

void check_fits(const Scalar& value, Dtype d) {
  if (!is_int(d) || value.kind() == DtypeKind::kBool) return;
  bool inside = false;  // also for NaN
  if (value.kind() == DtypeKind::kFloat) {
    const IntegerInfo limits = iinfo(d);
    const double whole = std::trunc(value.to_double());
    // The largest 64-bit integers round up to the power of two behind them.
    inside = whole >= double(limits.min) && whole < double(limits.max) + 1;
  } else {
    inside = value.fits(d);
  }
  CATENA_CHECK(ValueError, inside, value, " does not fit ", d, range_of(d),
               "; give a number of this range or use a wider dtype");
}

void check_fits(const char* who, const Scalar& value, Dtype d) {
  const ErrorName name(who);
  check_fits(value, d);
}

Dtype promote(Dtype d, const Scalar& value) {
  switch (value.kind()) {
    case DtypeKind::kBool: return d;
    case DtypeKind::kInt: {
      const Dtype result = d == Dtype::kBool ? Dtype::kInt64 : d;
      if (!value.fits(result)) [[unlikely]]
        fail_promotion(value, result);
      return result;
    }
    case DtypeKind::kFloat: return is_float(d) ? d : Dtype::kFloat64;
  }
  return d;
}

}  // namespace catena
