// Lazy, the base of the expressions of type_expression.h, and their leaves: values that print as
// the value (Constant) or as a name (Variable).
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "catena/autograd/detail/type_operators.h"

namespace catena::type_check {

template <class T>
class Constant;
template <class E, class Getter>
class GetAttr;
template <class E, class Key>
class GetItem;
template <class F, class... Arguments>
class Call;

namespace detail {

// An operand as an expression: a number, a dtype, a string, ... becomes a Constant.
template <class T>
using Lifted =
    std::conditional_t<Expression<T>, std::remove_cvref_t<T>, Constant<Stored<std::decay_t<T>>>>;
template <class T>
Lifted<T> lift(T&& operand) {
  return Lifted<T>(std::forward<T>(operand));
}

template <class Op, class L, class R>
concept Operands = Applies<Op, ValueOf<Lifted<L>>, ValueOf<Lifted<R>>>;
template <class Op, class L, class R>
concept Comparables = Compares<Op, ValueOf<Lifted<L>>, ValueOf<Lifted<R>>>;
template <class F, class... Arguments>
concept CallableWith = !std::same_as<ValueOf<F>, Array> &&
                       std::invocable<const ValueOf<F>&, ValueOf<Lifted<Arguments>>...>;

}  // namespace detail

// The base of all expressions. `Self` has get(), print(text) and priority().
template <class Self>
class Lazy : public detail::Node {
 public:
  // The current value.
  auto eval() const { return self().get(); }
  // The source form: "in_types[0].shape[1] * 4".
  std::string str() const {
    std::string text;
    self().print(text);
    return text;
  }
  // `if (e)`, e && f and !e do not compile: an expression is not a value.
  explicit operator bool() const = delete;  // for its value write e.eval()

  // Attributes of types and of arrays: shape, ndim, size (elements; of a TypeInfoTuple: types),
  // dtype, and kind of a dtype: 'b', 'i', 'u', 'f'. shape(i) is shape()[i]; negative axes count
  // from the end; an axis that does not exist is an InvalidType on evaluation.
  // (Templates, because clang 14 would check the constraints before Self is complete.)
#define CATENA_TYPE_ATTRIBUTE(name, Getter, Having)                     \
  template <class S = Self>                                             \
  auto name() const& requires detail::Having<S> {                       \
    return GetAttr<Self, detail::Getter>(self(), #name, {});            \
  }                                                                     \
  template <class S = Self>                                             \
      auto name() && requires detail::Having<S> {                       \
    return GetAttr<Self, detail::Getter>(std::move(self()), #name, {}); \
  }
  CATENA_TYPE_ATTRIBUTE(shape, ShapeOf, TypeLike)
  CATENA_TYPE_ATTRIBUTE(ndim, NdimOf, TypeLike)
  CATENA_TYPE_ATTRIBUTE(size, SizeOf, Sized)
  CATENA_TYPE_ATTRIBUTE(dtype, DtypeOf, TypeLike)
  CATENA_TYPE_ATTRIBUTE(kind, KindOf, DtypeValued)
#undef CATENA_TYPE_ATTRIBUTE
  template <class S = Self>
  auto shape(int64_t axis) const& requires detail::TypeLike<S> {
    return shape()[axis];
  }
  template <class S = Self>
      auto shape(int64_t axis) && requires detail::TypeLike<S> {
    return std::move(*this).shape()[axis];
  }
  // Any other attribute: attr("pad", &Options::pad), or with a function of the value.
  template <class Getter>
  auto attr(const char* name, Getter getter) const {
    return GetAttr<Self, Getter>(self(), name, std::move(getter));
  }

  // Elements of shapes and of std::vector by an integer (also an expression) or a Slice; views of
  // arrays by every basic index: e[0], e[Slice(1, none)], e[ellipsis], e[{0, ellipsis, newaxis}].
  template <class Key>
  auto operator[](Key&& key) const& {
    return GetItem<Self, detail::Lifted<Key>>(self(), detail::lift(std::forward<Key>(key)));
  }
  template <class Key>
  auto operator[](Key&& key) && {
    return GetItem<Self, detail::Lifted<Key>>(std::move(self()),
                                              detail::lift(std::forward<Key>(key)));
  }
  auto operator[](std::initializer_list<Index> key) const {
    return (*this)[std::vector<Index>(key)];
  }

  // The call of an expression whose value is a function.
  template <class... Arguments>
  requires detail::CallableWith<Self, Arguments...>
  auto operator()(Arguments&&... arguments) const {
    return Call<Self, detail::Lifted<Arguments>...>(
        self(), detail::lift(std::forward<Arguments>(arguments))...);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
  Self& self() { return static_cast<Self&>(*this); }
};

// A value that prints as the value.
template <class T>
class Constant : public Lazy<Constant<T>> {
 public:
  explicit Constant(T value) : value_(std::move(value)) {}
  const T& get() const { return value_; }
  void print(std::string& text) const { text += detail::text_of(value_); }
  int priority() const {
    if constexpr (detail::Number<T>) return value_ < T() ? detail::kUnary : detail::kAtom;
    return detail::kAtom;
  }

 private:
  T value_;
};

// A value that prints as a name: a number, a shape, an array, a function, ...
//   Variable(in_size_, "in_size"), Variable(Shape{2, 3}, "wanted"), Variable(W, "W"),
//   const Variable sum([](const Shape& s) { ... }, "sum"); expect(sum(in[0].shape()) == 10);
template <class T>
class Variable : public Lazy<Variable<T>> {
 public:
  Variable(T value, std::string name) : value_(std::move(value)), name_(std::move(name)) {}
  const T& get() const { return value_; }
  void print(std::string& text) const { text += name_; }
  int priority() const { return detail::kAtom; }

 private:
  T value_;
  std::string name_;
};
// Variable(value, name) holds a copy of the value, or a Shape for a list in braces.
template <class T>
Variable(T, std::string) -> Variable<detail::Stored<T>>;
Variable(std::initializer_list<int64_t>, std::string)->Variable<Shape>;

// The same as functions.
template <class T>
auto constant(T value) {
  return Constant<detail::Stored<T>>(std::move(value));
}
template <class T>
auto named(T value, std::string name) {
  return Variable<detail::Stored<T>>(std::move(value), std::move(name));
}
inline Variable<Shape> named(std::initializer_list<int64_t> shape, std::string name) {
  return {Shape(shape), std::move(name)};
}

}  // namespace catena::type_check
