// The values that the expressions of type_expression.h have: their types, attributes, elements and
// texts.
#pragma once

#include <concepts>
#include <cstdint>
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

// Texts of values --------------------------------------------------------------------------

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
