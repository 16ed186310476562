// Type checks of functions with the seed's messages.
//
//   void check_type_forward(const TypeInfoTuple& in) const override {
//     type_check::expect(in.size() == 2, in[0].dtype().kind() == 'f', in[0].shape(1) ==
//     in[1].shape(0));
//   }
//
// A failed expectation throws InvalidType:
//   Invalid operation is performed in: Linear (Forward)
//
//   Expect: in_types[0].shape[1] == in_types[1].shape[0]
//   Actual: 3 != 4
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "catena/array/array.h"

namespace catena {

namespace type_check {

// A value with the text of the expression that gave it.
struct Expression {
  std::string text;    // "in_types[0].shape[1]"
  int64_t number = 0;  // integers, extents, kinds (as characters) and dtypes (as enumerators)
  std::string shown;   // how the value is printed: "3", "float32", "f"
  int priority = 8;    // of the outermost operator, for parentheses; 8: none
};

// A comparison and whether it holds.
struct Condition {
  bool holds = true;
  std::string expect;  // "in_types[0].ndim == 2"
  std::string actual;  // "3 != 2"
};

Expression constant(int64_t value);
Expression constant(Dtype value);
Expression constant(char kind);
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, int64_t>) Expression constant(T value) {
  return constant(static_cast<int64_t>(value));
}
template <class T>
concept Constant = std::integral<T> || std::same_as<T, Dtype>;
// A named value for messages, the seed's Variable(value, name).
Expression named(int64_t value, std::string name);

Expression operator+(const Expression& a, const Expression& b);
Expression operator-(const Expression& a, const Expression& b);
Expression operator*(const Expression& a, const Expression& b);
Expression operator/(const Expression& a, const Expression& b);  // rounds down, as Python's //
Expression operator%(const Expression& a, const Expression& b);
Condition operator==(const Expression& a, const Expression& b);
Condition operator!=(const Expression& a, const Expression& b);
Condition operator<(const Expression& a, const Expression& b);
Condition operator<=(const Expression& a, const Expression& b);
Condition operator>(const Expression& a, const Expression& b);
Condition operator>=(const Expression& a, const Expression& b);
template <Constant T>
Condition operator==(const Expression& a, T b) {
  return a == constant(b);
}
template <Constant T>
Condition operator!=(const Expression& a, T b) {
  return a != constant(b);
}
template <Constant T>
Condition operator<(const Expression& a, T b) {
  return a < constant(b);
}
template <Constant T>
Condition operator<=(const Expression& a, T b) {
  return a <= constant(b);
}
template <Constant T>
Condition operator>(const Expression& a, T b) {
  return a > constant(b);
}
template <Constant T>
Condition operator>=(const Expression& a, T b) {
  return a >= constant(b);
}

void expect_one(const Condition& condition);
// Throws InvalidType for the first condition that does not hold.
template <class... Conditions>
void expect(const Conditions&... conditions) {
  (expect_one(conditions), ...);
}

}  // namespace type_check

// Type of one array: "in_types[0]".
class TypeInfo {
 public:
  TypeInfo(const Array& array, std::string name) : array_(array), name_(std::move(name)) {}
  type_check::Expression ndim() const;
  type_check::Expression size() const;
  type_check::Expression shape(int axis) const;  // IndexError-like InvalidType when out of range
  struct DtypeInfo : type_check::Expression {
    type_check::Expression kind() const;  // 'b', 'i', 'u', 'f'
  };
  DtypeInfo dtype() const;

 private:
  Array array_;
  std::string name_;
};

// Types of all inputs of a function: "in_types".
class TypeInfoTuple {
 public:
  TypeInfoTuple(const std::vector<Array>& arrays, std::string name = "in_types");
  type_check::Expression size() const;
  const TypeInfo& operator[](int i) const;

 private:
  std::vector<TypeInfo> types_;
  std::string name_;
};

}  // namespace catena
