// What the expressions of type_expression.h compute with: the types of their values, the operators
// on them, and their texts.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/array/array.h"

namespace catena::type_check {

namespace detail {
struct Node {};       // marks expressions
struct Condition {};  // marks comparisons
}  // namespace detail

template <class E>
concept Expression = std::derived_from<std::remove_cvref_t<E>, detail::Node>;

namespace detail {

// Priorities of Python's operators.
enum Priority {
  kCompare = -1,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPower,
  kAtom,
};

// Values -----------------------------------------------------------------------------------

template <class E>
using ValueOf = std::remove_cvref_t<decltype(std::declval<const std::remove_cvref_t<E>&>().get())>;

// A kind ('f') is a character, no number.
template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, char>;
template <class T>
concept Whole = Number<T> && std::integral<T>;

// The types that values of expressions have: int64 for integers, texts and shapes of their own.
template <class T>
struct StoredType {
  using type = std::conditional_t<
      std::convertible_to<const T&, std::string_view>, std::string,
      std::conditional_t<
          std::is_base_of_v<Dims, T>, Shape,
          std::conditional_t<Whole<T> && !std::same_as<T, bool>, int64_t,
                             std::conditional_t<std::floating_point<T>, double, std::decay_t<T>>>>>;
};
template <std::integral I>
requires(!std::same_as<I, bool>) struct StoredType<std::vector<I>> {
  using type = Shape;
};
template <class T>
using Stored = typename StoredType<T>::type;

template <class E>
concept TypeLike = requires(const ValueOf<E>& value) {
  { value.shape() } -> std::convertible_to<Shape>;
  value.dtype();
};
template <class E>
concept Sized = TypeLike<E> || requires(const ValueOf<E>& value) {
  value.type_count();
};
template <class E>
concept DtypeValued =
    std::same_as<ValueOf<E>, Dtype> || std::same_as<ValueOf<E>, std::optional<Dtype>>;

// Attributes -------------------------------------------------------------------------------

struct ShapeOf {
  decltype(auto) operator()(const auto& type) const { return type.shape(); }
};
struct NdimOf {
  int64_t operator()(const auto& type) const { return type.ndim(); }
};
struct SizeOf {
  int64_t operator()(const auto& type) const {
    if constexpr (requires { type.type_count(); })
      return type.type_count();
    else
      return type.size();
  }
};
struct DtypeOf {
  auto operator()(const auto& type) const { return type.dtype(); }
};
struct KindOf {
  char operator()(Dtype d) const {
    return d == Dtype::kBool ? 'b' : is_float(d) ? 'f' : is_unsigned_int(d) ? 'u' : 'i';
  }
  char operator()(std::optional<Dtype> d) const;  // InvalidType for none
};

// Elements ---------------------------------------------------------------------------------

// Throws the InvalidType of "length > needed - 1".
[[noreturn, gnu::cold]] void refuse_position(const std::string& length_text, int64_t size,
                                             int64_t needed);
// A possibly negative position within [0, size).
template <class LengthText>
size_t position(int64_t i, size_t size, LengthText length_text) {
  const auto n = static_cast<int64_t>(size);
  if (i >= n || i < -n) [[unlikely]]
    refuse_position(length_text(), n, i < 0 ? -i : i + 1);
  return static_cast<size_t>(i < 0 ? i + n : i);
}
Shape item(const Shape& shape, const Slice& slice);
inline Array item(const Array& array, const Index& index) { return array.at({index}); }
inline Array item(const Array& array, const std::vector<Index>& index) { return array.at(index); }
int64_t product(const Shape& shape);

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

// Texts ------------------------------------------------------------------------------------

// Throws the InvalidType of a comparison.
[[noreturn, gnu::cold]] void refuse_comparison(const std::string& text, const std::string& left,
                                               const char* inverse, const std::string& right);
void append_symbol(std::string& text, const char* symbol);  // with a blank on either side

std::string text_of(int64_t value);
std::string text_of(const Shape& shape);
std::string text_of(std::optional<Dtype> dtype);  // "None" for none
std::string text_of(double value);                // "2.0"
std::string text_of(const Slice& slice);          // "1:5:2", "1:", ":"
std::string text_of(const Index& index);
std::string text_of(const std::vector<Index>& indices);  // "0, :, ..."
inline std::string text_of(Dtype dtype) { return to_string(dtype); }
inline std::string text_of(char kind) { return std::string(1, kind); }
inline std::string text_of(Ellipsis) { return "..."; }
inline std::string text_of(NewAxis) { return "newaxis"; }
template <class T>
std::string text_of(const T& value) {
  return message(value);
}

}  // namespace detail
}  // namespace catena::type_check
