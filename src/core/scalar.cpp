#include "catena/core/scalar.h"

#include <cmath>
#include <limits>

namespace catena {

Dtype Scalar::default_dtype() const {
  switch (kind_) {
    case Kind::kBool:
      return Dtype::kBool;
    case Kind::kFloat:
      return Dtype::kFloat64;
    case Kind::kUInt:
      return bits_.u > uint64_t(std::numeric_limits<int64_t>::max()) ? Dtype::kUInt64
                                                                     : Dtype::kInt64;
    case Kind::kInt:
      return Dtype::kInt64;
  }
  return Dtype::kInt64;
}

double Scalar::to_double() const {
  switch (kind_) {
    case Kind::kFloat:
      return bits_.d;
    case Kind::kUInt:
      return static_cast<double>(bits_.u);
    default:
      return static_cast<double>(bits_.i);
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

Dtype promote(Dtype d, const Scalar& value) {
  switch (value.kind()) {
    case DtypeKind::kBool:
      return d;
    case DtypeKind::kInt: {
      const Dtype result = d == Dtype::kBool ? Dtype::kInt64 : d;
      CATENA_CHECK(ValueError, value.fits(result), "integer ", value, " is out of bounds for ",
                   result, "; give the array a wider dtype with astype");
      return result;
    }
    case DtypeKind::kFloat:
      return is_float(d) ? d : Dtype::kFloat64;
  }
  return d;
}

}  // namespace catena
