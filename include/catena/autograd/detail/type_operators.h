// The operators and comparisons of the expressions of type_expression.h, and the errors of those
// that are refused.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "catena/autograd/detail/type_values.h"

namespace catena::type_check {
namespace detail {

// Operators --------------------------------------------------------------------------------

// Arithmetic is done in int64, where it wraps, or in double.
inline int64_t wide(Whole auto value) { return static_cast<int64_t>(value); }
inline double wide(std::floating_point auto value) { return value; }
inline int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
inline uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

// A right operand that an operator does not take.
struct Refusal {
  const char* wanted;  // " != 0"
  const char* found;   // " == 0"
};
[[noreturn, gnu::cold]] void refuse_operand(const std::string& operand, const Refusal& refusal,
                                            const std::string& value);
const Refusal* zero_divisor(int64_t b);
const Refusal* negative_exponent(int64_t b);
const Refusal* shift_out_of_range(int64_t b);

int64_t floor_quotient(int64_t a, int64_t b);  // b is not 0
int64_t integer_power(int64_t a, int64_t b);
double real_power(double a, double b);
double real_floor_quotient(double a, double b);
double real_modulo(double a, double b);
Shape concatenated(const Shape& a, const Shape& b);

struct Add {
  static constexpr const char* kSymbol = "+";
  static constexpr int kPriority = kSum;
  static int64_t of(int64_t a, int64_t b) { return wrap(bits(a) + bits(b)); }
  static double of(double a, double b) { return a + b; }
  static Shape of(const Shape& a, const Shape& b) { return concatenated(a, b); }
};
struct Subtract {
  static constexpr const char* kSymbol = "-";
  static constexpr int kPriority = kSum;
  static int64_t of(int64_t a, int64_t b) { return wrap(bits(a) - bits(b)); }
  static double of(double a, double b) { return a - b; }
};
struct Multiply {
  static constexpr const char* kSymbol = "*";
  static constexpr int kPriority = kProduct;
  static int64_t of(int64_t a, int64_t b) { return wrap(bits(a) * bits(b)); }
  static double of(double a, double b) { return a * b; }
};
struct FloorDivide {
  static constexpr const char* kSymbol = "//";
  static constexpr int kPriority = kProduct;
  static const Refusal* refusal(std::same_as<int64_t> auto b) { return zero_divisor(b); }
  static int64_t of(int64_t a, int64_t b) { return floor_quotient(a, b); }
  static double of(double a, double b) { return real_floor_quotient(a, b); }
};
struct TrueDivide {
  static constexpr const char* kSymbol = "/";
  static constexpr int kPriority = kProduct;
  static const Refusal* refusal(std::same_as<int64_t> auto b) { return zero_divisor(b); }
  static double of(int64_t a, int64_t b) { return double(a) / double(b); }
  static double of(double a, double b) { return a / b; }
};
struct Modulo {
  static constexpr const char* kSymbol = "%";
  static constexpr int kPriority = kProduct;
  static const Refusal* refusal(std::same_as<int64_t> auto b) { return zero_divisor(b); }
  static int64_t of(int64_t a, int64_t b) {
    return Subtract::of(a, Multiply::of(floor_quotient(a, b), b));
  }
  static double of(double a, double b) { return real_modulo(a, b); }
};
struct Power {
  static constexpr const char* kSymbol = "**";
  static constexpr int kPriority = kPower;
  static const Refusal* refusal(std::same_as<int64_t> auto b) { return negative_exponent(b); }
  static int64_t of(int64_t a, int64_t b) { return integer_power(a, b); }
  static double of(double a, double b) { return real_power(a, b); }
};
struct ShiftLeft {
  static constexpr const char* kSymbol = "<<";
  static constexpr int kPriority = kShift;
  static const Refusal* refusal(int64_t b) { return shift_out_of_range(b); }
  static int64_t of(int64_t a, int64_t b) { return wrap(bits(a) << b); }
};
struct ShiftRight {
  static constexpr const char* kSymbol = ">>";
  static constexpr int kPriority = kShift;
  static const Refusal* refusal(int64_t b) { return shift_out_of_range(b); }
  static int64_t of(int64_t a, int64_t b) { return a >> b; }
};
// Of two bools a bool, as in Python.
struct BitAnd {
  static constexpr const char* kSymbol = "&";
  static constexpr int kPriority = kBitAnd;
  static constexpr bool kOfBools = true;
  static bool of(bool a, bool b) { return a && b; }
  static int64_t of(int64_t a, int64_t b) { return a & b; }
};
struct BitXor {
  static constexpr const char* kSymbol = "^";
  static constexpr int kPriority = kBitXor;
  static constexpr bool kOfBools = true;
  static bool of(bool a, bool b) { return a != b; }
  static int64_t of(int64_t a, int64_t b) { return a ^ b; }
};
struct BitOr {
  static constexpr const char* kSymbol = "|";
  static constexpr int kPriority = kBitOr;
  static constexpr bool kOfBools = true;
  static bool of(bool a, bool b) { return a || b; }
  static int64_t of(int64_t a, int64_t b) { return a | b; }
};

template <class Op, class A>
concept AppliesToOne = Number<A> && requires(const A& a) {
  { Op::of(wide(a)) } -> std::same_as<decltype(wide(a))>;
};
struct Negative {
  static constexpr const char* kSymbol = "-";
  static int64_t of(int64_t a) { return wrap(0 - bits(a)); }
  static double of(double a) { return -a; }
};
struct Positive {
  static constexpr const char* kSymbol = "+";
  static auto of(auto a) { return a; }
};
struct Invert {
  static constexpr const char* kSymbol = "~";
  static int64_t of(int64_t a) { return ~a; }
};

// The values as the operator takes them.
template <class Op, class A, class B>
auto apply(const A& a, const B& b) {
  if constexpr (std::same_as<A, bool> && std::same_as<B, bool> && requires { Op::kOfBools; })
    return Op::of(a, b);
  else if constexpr (Whole<A> && Whole<B>)
    return Op::of(wide(a), wide(b));
  else if constexpr (Number<A> && Number<B>)
    return Op::of(static_cast<double>(a), static_cast<double>(b));
  else
    return Op::of(a, b);
}

template <class Op, class A, class B>
concept Applies = (Whole<A> && Whole<B> && requires { Op::of(int64_t(), int64_t()); }) ||
                  (Number<A> && Number<B> &&
                   !(Whole<A> && Whole<B>)&&requires {
                     { Op::of(double(), double()) } -> std::same_as<double>;
                   }) ||
                  (std::same_as<A, Shape> && std::same_as<B, Shape> &&
                   requires(const A& a) { Op::of(a, a); });

// Comparisons ------------------------------------------------------------------------------

template <class A, class B>
concept Ordered = (Number<A> && Number<B>) ||
                  (std::same_as<A, B> && (std::same_as<A, Shape> || std::same_as<A, std::string>));
// Equality of anything that C++ compares; a kind also equals a text of one character.
template <class A, class B>
concept Equatable = Ordered<A, B> ||(std::same_as<A, char>&& std::same_as<B, std::string>) ||
                    requires(const A& a, const B& b) {
  requires !Number<A> && !Number<B>;
  { a == b } -> std::same_as<bool>;
};

inline bool equal(char a, const std::string& b) { return b.size() == 1 && b[0] == a; }
template <class A, class B>
bool equal(const A& a, const B& b) {
  if constexpr (Number<A> && Number<B>)
    return wide(a) == wide(b);
  else
    return a == b;
}
template <class A, class B>
bool less(const A& a, const B& b) {
  if constexpr (Number<A> && Number<B>)
    return wide(a) < wide(b);
  else
    return a < b;
}

struct Equal {
  static constexpr const char *kSymbol = "==", *kInverse = "!=";
  static bool of(const auto& a, const auto& b) { return equal(a, b); }
};
struct NotEqual {
  static constexpr const char *kSymbol = "!=", *kInverse = "==";
  static bool of(const auto& a, const auto& b) { return !equal(a, b); }
};
struct Less {
  static constexpr const char *kSymbol = "<", *kInverse = ">=";
  static bool of(const auto& a, const auto& b) { return less(a, b); }
};
struct LessEqual {
  static constexpr const char *kSymbol = "<=", *kInverse = ">";
  static bool of(const auto& a, const auto& b) { return less(a, b) || equal(a, b); }
};
struct Greater {
  static constexpr const char *kSymbol = ">", *kInverse = "<=";
  static bool of(const auto& a, const auto& b) { return less(b, a); }
};
struct GreaterEqual {
  static constexpr const char *kSymbol = ">=", *kInverse = "<";
  static bool of(const auto& a, const auto& b) { return less(b, a) || equal(a, b); }
};

template <class Op, class A, class B>
concept Compares = Ordered<A, B> ||
    ((std::same_as<Op, Equal> || std::same_as<Op, NotEqual>)&&Equatable<A, B>);

// Texts of comparisons --------------------------------------------------------------------

// Throws the InvalidType of a comparison.
[[noreturn, gnu::cold]] void refuse_comparison(const std::string& text, const std::string& left,
                                               const char* inverse, const std::string& right);
void append_symbol(std::string& text, const char* symbol);  // with a blank on either side

}  // namespace detail
}  // namespace catena::type_check
