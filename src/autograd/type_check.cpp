#include "catena/autograd/type_check.h"

#include <algorithm>
#include <cmath>

namespace catena {
namespace type_check {
namespace detail {

char KindOf::operator()(std::optional<Dtype> d) const {
  if (!d) throw InvalidType("the kind of a dtype", "None has no kind");
  return (*this)(*d);
}

void refuse_position(const std::string& length_text, int64_t size, int64_t needed) {
  throw InvalidType(message(length_text, " >= ", needed), message(size, " < ", needed));
}

Shape item(const Shape& shape, const Slice& slice) {
  CATENA_CHECK(ValueError, slice.step != 0, "type check: the step of a slice is 0");
  const int64_t n = shape.ndim(), step = std::clamp(slice.step, -n - 1, n + 1);
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto bound = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + n : *given, low, high);
  };
  const int64_t start = bound(slice.start, step > 0 ? low : high),
                stop = bound(slice.stop, step > 0 ? high : low);
  Shape part;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
    part.push_back(shape[size_t(i)]);
  return part;
}

int64_t product(const Shape& shape) {
  int64_t result = 1;
  for (int64_t extent : shape) result = Multiply::of(result, extent);
  return result;
}

Shape concatenated(const Shape& a, const Shape& b) {
  Shape both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

void refuse_operand(const std::string& operand, const Refusal& refusal, const std::string& value) {
  throw InvalidType(operand + refusal.wanted, value + refusal.found);
}
const Refusal* zero_divisor(int64_t b) {
  static constexpr Refusal kZero{" != 0", " == 0"};
  return b == 0 ? &kZero : nullptr;
}
const Refusal* negative_exponent(int64_t b) {
  static constexpr Refusal kNegative{" >= 0", " < 0"};
  return b < 0 ? &kNegative : nullptr;
}
const Refusal* shift_out_of_range(int64_t b) {
  static constexpr Refusal kLong{" < 64", " >= 64"};
  return b >= 64 ? &kLong : negative_exponent(b);
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == -1) return Negative::of(a);  // the quotient of the smallest integer wraps
  const int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t integer_power(int64_t a, int64_t b) {
  int64_t result = 1;
  for (; b > 0; b >>= 1, a = Multiply::of(a, a)) {
    if (b & 1) result = Multiply::of(result, a);
  }
  return result;
}
double real_power(double a, double b) { return std::pow(a, b); }
double real_floor_quotient(double a, double b) { return std::floor(a / b); }
double real_modulo(double a, double b) { return a - std::floor(a / b) * b; }

void refuse_comparison(const std::string& text, const std::string& left, const char* inverse,
                       const std::string& right) {
  throw InvalidType(text, left + " " + inverse + " " + right);
}
void append_symbol(std::string& text, const char* symbol) {
  text.append(" ").append(symbol).append(" ");
}

std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(const Shape& shape) { return to_string(shape); }
std::string text_of(std::optional<Dtype> dtype) { return dtype ? to_string(*dtype) : "None"; }

std::string text_of(double value) {
  const std::string text = message(value);
  const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return whole ? text + ".0" : text;
}

std::string text_of(const Slice& slice) {
  const auto bound = [](std::optional<int64_t> b) { return b ? message(*b) : std::string(); };
  const std::string range = bound(slice.start) + ":" + bound(slice.stop);
  return slice.step == 1 ? range : range + message(":", slice.step);
}
std::string text_of(const Index& index) {
  return std::visit([](const auto& entry) { return text_of(entry); },
                    static_cast<const std::variant<int64_t, Slice, NewAxis, Ellipsis>&>(index));
}
std::string text_of(const std::vector<Index>& indices) {
  std::string text;
  for (const Index& index : indices) text += (text.empty() ? "" : ", ") + text_of(index);
  return text;
}

}  // namespace detail

void InputType::print(std::string& text) const { text += message(types_->name, "[", i_, "]"); }

TypeInfoTuple get_types(const std::vector<Array>& data, const std::string& name, bool accept_none) {
  for (size_t i = 0; i < data.size() && !accept_none; ++i)
    CATENA_CHECK(ValueError, data[i].defined(), "get_types: ", name, "[", i,
                 "] is an undefined array; give accept_none where one may be missing");
  return TypeInfoTuple(data, name);
}

}  // namespace type_check

TypeInfo::TypeInfo(const Array& array) {
  if (array.defined()) *this = TypeInfo(array.shape(), array.dtype());
}

std::string to_string(const TypeInfo& type) {
  return type_check::detail::text_of(type.dtype()) + " " + to_string(type.shape());
}

TypeInfoTuple::TypeInfoTuple(const std::vector<Array>& arrays, const std::string& name) {
  auto* types = new type_check::detail::Types;
  types_ = type_check::detail::TypesPtr(types);
  types->name = name;
  types->types.reserve(arrays.size());
  for (const Array& array : arrays) types->types.emplace_back(array);
}

type_check::InputType TypeInfoTuple::operator[](int i) const {
  const auto n = static_cast<int>(types_->types.size());
  if (i < 0 || i >= n) [[unlikely]]
    throw InvalidType(message(name(), ".size > ", i), message(n, " <= ", i));
  return {types_, static_cast<size_t>(i)};
}

}  // namespace catena
