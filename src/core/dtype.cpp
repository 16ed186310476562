#include "catena/core/dtype.h"

#include <algorithm>
#include <ostream>

namespace catena {
namespace {

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

// Whether a float holds every value of another.
bool holds(Dtype wide, Dtype narrow) {
  const DtypeRow &w = row_of(wide), &n = row_of(narrow);
  return w.mantissa_bits >= n.mantissa_bits && w.exponent_bits >= n.exponent_bits;
}

// The narrowest float that holds both: of float16 and bfloat16, float32.
Dtype promote_floats(Dtype a, Dtype b) {
  if (holds(a, b)) return a;
  if (holds(b, a)) return b;
  return holds(Dtype::kFloat32, a) && holds(Dtype::kFloat32, b) ? Dtype::kFloat32 : Dtype::kFloat64;
}

// Floats that NumPy does not have stay what they are beside integers.
bool is_numpy_float(Dtype d) { return is_float(d) && row_of(d).array_code[1] == 'f'; }

// The narrowest IEEE float that holds every value of an integer type (NumPy's rule).
Dtype float_for_int(Dtype d) {
  return itemsize(d) == 1 ? Dtype::kFloat16 : itemsize(d) == 2 ? Dtype::kFloat32 : Dtype::kFloat64;
}

}  // namespace

std::ostream& operator<<(std::ostream& os, Dtype d) { return os << name(d); }

namespace {

// NumPy's and C's other names.
struct Alias {
  std::string_view text;
  Dtype dtype;
};
constexpr Alias kAliases[] = {
    {"float", Dtype::kFloat64}, {"int", Dtype::kInt64},        {"uint", Dtype::kUInt64},
    {"bool_", Dtype::kBool},    {"byte", Dtype::kInt8},        {"ubyte", Dtype::kUInt8},
    {"short", Dtype::kInt16},   {"ushort", Dtype::kUInt16},    {"intc", Dtype::kInt32},
    {"uintc", Dtype::kUInt32},  {"int_", Dtype::kInt64},       {"longlong", Dtype::kInt64},
    {"q", Dtype::kInt64},       {"ulonglong", Dtype::kUInt64}, {"Q", Dtype::kUInt64},
    {"half", Dtype::kFloat16},  {"single", Dtype::kFloat32},   {"double", Dtype::kFloat64},
    {"float_", Dtype::kFloat64}};

}  // namespace

Dtype parse_dtype(std::string_view text) {
  std::string_view rest = text;
  if (rest.size() > 1 && (rest[0] == '<' || rest[0] == '=' || rest[0] == '|'))
    rest.remove_prefix(1);
  for (int i = 0; i < kDtypeCount; ++i) {
    const DtypeRow& row = kDtypeRows[i];
    if (rest == row.name || rest == std::string_view(&row.letter, 1) || rest == row.code ||
        (!rest.empty() && rest == row.array_code + 1))
      return static_cast<Dtype>(i);
  }
  for (const Alias& alias : kAliases) {
    if (rest == alias.text) return alias.dtype;
  }
  fail<DtypeError>("parse_dtype: '", text,
                   "' is not a dtype; expected bool, int8..int64, uint8..uint64, ", float_names());
}

std::optional<Dtype> find_dtype(const DtypeRow::Text DtypeRow::*column, std::string_view text) {
  for (int i = 0; i < kDtypeCount; ++i)
    if (!text.empty() && text == kDtypeRows[i].*column) return static_cast<Dtype>(i);
  return {};
}

std::string float_names() {
  std::string names;
  int left = int(std::count_if(std::begin(kDtypeRows), std::end(kDtypeRows),
                               [](const DtypeRow& r) { return r.kind == DtypeKind::kFloat; }));
  for (const DtypeRow& row : kDtypeRows) {
    if (row.kind != DtypeKind::kFloat) continue;
    names += row.name;
    if (--left > 0) names += left == 1 ? " or " : ", ";
  }
  return names;
}

Dtype promote(Dtype a, Dtype b) {
  if (a == b) return a;
  if (a == Dtype::kBool) return b;
  if (b == Dtype::kBool) return a;
  if (is_int(a) && is_int(b)) return promote_ints(a, b);
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  const Dtype f = is_float(a) ? a : b, i = is_float(a) ? b : a;
  if (!is_numpy_float(f)) return f;
  return promote_floats(f, float_for_int(i));
}

Dtype float_result(Dtype d) {
  if (is_float(d)) return d;
  return d == Dtype::kBool ? Dtype::kFloat16 : float_for_int(d);
}

double round_to(Dtype d, double value) {
  return visit_float("round_to", d, [&]<class T>(TypeTag<T>) {
    return static_cast<double>(static_cast<compute_t<T>>(static_cast<T>(value)));
  });
}

bool can_cast_safely(Dtype from, Dtype to) {
  if (from == to || from == Dtype::kBool) return true;
  if (to == Dtype::kBool) return false;
  if (is_float(from)) return is_float(to) && holds(to, from);
  if (is_numpy_float(to)) return itemsize(float_for_int(from)) <= itemsize(to);
  if (is_float(to)) return int(8 * itemsize(from)) <= row_of(to).mantissa_bits + 1;
  return promote_ints(from, to) == to;
}

}  // namespace catena
