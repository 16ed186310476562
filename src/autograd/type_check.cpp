#include "catena/autograd/type_check.h"

namespace catena {
namespace type_check {
namespace {

// Priorities of Python's operators, for minimal parentheses.
constexpr int kSum = 4, kProduct = 5;

std::string wrapped(const Expression& e, int priority) {
  return e.priority < priority ? "(" + e.text + ")" : e.text;
}

Expression combine(const Expression& a, const char* symbol, const Expression& b, int priority,
                   int64_t value) {
  // The right operand of equal priority needs parentheses: a - (b - c).
  return {wrapped(a, priority) + " " + symbol + " " + wrapped(b, priority + 1), value,
          std::to_string(value), priority};
}

Condition compare(const Expression& a, const char* symbol, const char* inverse, const Expression& b,
                  bool holds) {
  if (holds) return {};
  return {false, a.text + " " + symbol + " " + b.text, a.shown + " " + inverse + " " + b.shown};
}

int64_t floor_quotient(int64_t a, int64_t b) {
  CATENA_CHECK(InvalidType, b != 0, "type check: division by zero");
  const int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

}  // namespace

Expression constant(int64_t value) { return {std::to_string(value), value, std::to_string(value)}; }
Expression constant(Dtype value) {
  return {to_string(value), static_cast<int64_t>(value), to_string(value)};
}
Expression constant(char kind) { return {std::string(1, kind), kind, std::string(1, kind)}; }
Expression named(int64_t value, std::string name) {
  return {std::move(name), value, std::to_string(value)};
}

Expression operator+(const Expression& a, const Expression& b) {
  return combine(a, "+", b, kSum, a.number + b.number);
}
Expression operator-(const Expression& a, const Expression& b) {
  return combine(a, "-", b, kSum, a.number - b.number);
}
Expression operator*(const Expression& a, const Expression& b) {
  return combine(a, "*", b, kProduct, a.number * b.number);
}
Expression operator/(const Expression& a, const Expression& b) {
  return combine(a, "//", b, kProduct, floor_quotient(a.number, b.number));
}
Expression operator%(const Expression& a, const Expression& b) {
  return combine(a, "%", b, kProduct, a.number - floor_quotient(a.number, b.number) * b.number);
}
Condition operator==(const Expression& a, const Expression& b) {
  return compare(a, "==", "!=", b, a.number == b.number);
}
Condition operator!=(const Expression& a, const Expression& b) {
  return compare(a, "!=", "==", b, a.number != b.number);
}
Condition operator<(const Expression& a, const Expression& b) {
  return compare(a, "<", ">=", b, a.number < b.number);
}
Condition operator<=(const Expression& a, const Expression& b) {
  return compare(a, "<=", ">", b, a.number <= b.number);
}
Condition operator>(const Expression& a, const Expression& b) {
  return compare(a, ">", "<=", b, a.number > b.number);
}
Condition operator>=(const Expression& a, const Expression& b) {
  return compare(a, ">=", "<", b, a.number >= b.number);
}

void expect_one(const Condition& condition) {
  CATENA_CHECK(InvalidType, condition.holds, "Expect: ", condition.expect,
               "\nActual: ", condition.actual);
}

}  // namespace type_check

using type_check::Expression;

Expression TypeInfo::ndim() const { return type_check::named(array_.ndim(), name_ + ".ndim"); }
Expression TypeInfo::size() const { return type_check::named(array_.size(), name_ + ".size"); }

Expression TypeInfo::shape(int axis) const {
  const int n = array_.ndim();
  CATENA_CHECK(InvalidType, axis < n && axis >= -n, "Expect: ", name_,
               ".ndim >= ", axis < 0 ? -axis : axis + 1, "\nActual: ", n, " < ",
               axis < 0 ? -axis : axis + 1);
  return type_check::named(array_.shape(axis), message(name_, ".shape[", axis, "]"));
}

TypeInfo::DtypeInfo TypeInfo::dtype() const {
  DtypeInfo result;
  static_cast<Expression&>(result) = type_check::constant(array_.dtype());
  result.text = name_ + ".dtype";
  return result;
}

Expression TypeInfo::DtypeInfo::kind() const {
  const Dtype d = static_cast<Dtype>(number);
  const char kind = d == Dtype::kBool ? 'b' : is_float(d) ? 'f' : is_unsigned_int(d) ? 'u' : 'i';
  Expression result = type_check::constant(kind);
  result.text = text + ".kind";
  return result;
}

TypeInfoTuple::TypeInfoTuple(const std::vector<Array>& arrays, std::string name)
    : name_(std::move(name)) {
  for (size_t i = 0; i < arrays.size(); ++i)
    types_.emplace_back(arrays[i], message(name_, "[", i, "]"));
}

Expression TypeInfoTuple::size() const {
  return type_check::named(static_cast<int64_t>(types_.size()), name_ + ".size");
}

const TypeInfo& TypeInfoTuple::operator[](int i) const {
  const int n = static_cast<int>(types_.size());
  CATENA_CHECK(InvalidType, i >= 0 && i < n, "Expect: ", name_, ".size > ", i, "\nActual: ", n,
               " <= ", i);
  return types_[size_t(i)];
}

}  // namespace catena
