#include "catena/core/dtype.h"

#include <algorithm>
#include <ostream>

namespace catena {
namespace {

constexpr const char* kNames[kDtypeCount] = {"bool",     "int8",    "int16",  "int32",  "int64",
                                             "uint8",    "uint16",  "uint32", "uint64", "float16",
                                             "bfloat16", "float32", "float64"};

// NumPy's letter codes and size codes, in the enumerators' order.
constexpr std::string_view kCodes[kDtypeCount][2] = {
    {"?", "b1"}, {"b", "i1"}, {"h", "i2"}, {"i", "i4"},   {"l", "i8"}, {"B", "u1"}, {"H", "u2"},
    {"I", "u4"}, {"L", "u8"}, {"e", "f2"}, {"E", "bf16"}, {"f", "f4"}, {"d", "f8"}};

Dtype signed_of_size(size_t bytes) {
  return bytes == 1   ? Dtype::kInt8
         : bytes == 2 ? Dtype::kInt16
         : bytes == 4 ? Dtype::kInt32
                      : Dtype::kInt64;
}

Dtype promote_ints(Dtype a, Dtype b) {
  if (is_signed_int(a) == is_signed_int(b)) return itemsize(a) >= itemsize(b) ? a : b;
  const Dtype s = is_signed_int(a) ? a : b, u = is_signed_int(a) ? b : a;
  if (itemsize(s) > itemsize(u)) return s;
  return itemsize(u) == 8 ? Dtype::kFloat64 : signed_of_size(itemsize(u) * 2);
}

Dtype promote_floats(Dtype a, Dtype b) {
  if (a == b) return a;
  if (itemsize(a) == 2 && itemsize(b) == 2) return Dtype::kFloat32;  // half with bfloat16
  return itemsize(a) > itemsize(b) ? a : b;
}

// The narrowest IEEE float that holds every value of an integer type (NumPy's rule).
Dtype float_for_int(Dtype d) {
  return itemsize(d) == 1 ? Dtype::kFloat16 : itemsize(d) == 2 ? Dtype::kFloat32 : Dtype::kFloat64;
}

}  // namespace

const char* name(Dtype d) { return kNames[static_cast<int>(d)]; }
std::ostream& operator<<(std::ostream& os, Dtype d) { return os << name(d); }

namespace {

// NumPy's and C's other names.
struct Alias {
  std::string_view text;
  Dtype dtype;
};
constexpr Alias kAliases[] = {
    {"float", Dtype::kFloat64},  {"int", Dtype::kInt64},        {"uint", Dtype::kUInt64},
    {"bool_", Dtype::kBool},     {"byte", Dtype::kInt8},        {"ubyte", Dtype::kUInt8},
    {"short", Dtype::kInt16},    {"ushort", Dtype::kUInt16},    {"intc", Dtype::kInt32},
    {"uintc", Dtype::kUInt32},   {"int_", Dtype::kInt64},       {"longlong", Dtype::kInt64},
    {"q", Dtype::kInt64},        {"ulonglong", Dtype::kUInt64}, {"Q", Dtype::kUInt64},
    {"half", Dtype::kFloat16},   {"single", Dtype::kFloat32},   {"double", Dtype::kFloat64},
    {"float_", Dtype::kFloat64}, {"V2", Dtype::kBFloat16}};

}  // namespace

Dtype parse_dtype(std::string_view text) {
  std::string_view rest = text;
  if (rest.size() > 1 && (rest[0] == '<' || rest[0] == '=' || rest[0] == '|'))
    rest.remove_prefix(1);
  for (int i = 0; i < kDtypeCount; ++i) {
    if (rest == kNames[i] || rest == kCodes[i][0] || rest == kCodes[i][1])
      return static_cast<Dtype>(i);
  }
  for (const Alias& alias : kAliases) {
    if (rest == alias.text) return alias.dtype;
  }
  fail<DtypeError>("parse_dtype: '", text,
                   "' is not a dtype; expected bool, int8..int64, uint8..uint64, float16, "
                   "bfloat16, float32 or float64");
}

Dtype promote(Dtype a, Dtype b) {
  if (a == b) return a;
  if (a == Dtype::kBool) return b;
  if (b == Dtype::kBool) return a;
  if (is_int(a) && is_int(b)) return promote_ints(a, b);
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  const Dtype f = is_float(a) ? a : b, i = is_float(a) ? b : a;
  if (f == Dtype::kBFloat16) return f;
  return promote_floats(f, float_for_int(i));
}

Dtype float_result(Dtype d) {
  if (is_float(d)) return d;
  return d == Dtype::kBool ? Dtype::kFloat16 : float_for_int(d);
}

bool can_cast_safely(Dtype from, Dtype to) {
  if (from == to || from == Dtype::kBool) return true;
  if (to == Dtype::kBool) return false;
  if (from == Dtype::kBFloat16) return to == Dtype::kFloat32 || to == Dtype::kFloat64;
  if (to == Dtype::kBFloat16) return itemsize(from) == 1 && is_int(from);
  if (is_float(from)) return is_float(to) && itemsize(to) >= itemsize(from);
  if (is_float(to)) return itemsize(float_for_int(from)) <= itemsize(to);
  return promote_ints(from, to) == to;
}

}  // namespace catena
