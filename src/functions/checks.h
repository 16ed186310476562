// What a function requires of its inputs, stated once. The statements are comparisons of
// type_check.h: evaluating them costs a few compares, and their text is built only when one of them
// does not hold.
//
//   const Checks checks("MatMul");
//   const TypeOf a(x, 0), b(y, 1);
//   checks.require(a.dtype().kind() == 'f', b.dtype() == a.dtype(), a.ndim() == 2, b.ndim() == 2);
//   checks.require(a.shape(1) == b.shape(0));
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "catena/autograd/type_check.h"

namespace catena::functions {

// The type of input i as a checked expression, "in_types[i]". Refers to the array.
class TypeOf : public type_check::Lazy<TypeOf> {
 public:
  TypeOf(const Array& array, int i) : array_(&array), i_(i) {}
  const Array& get() const { return *array_; }
  void print(std::string& text) const { text += message("in_types[", i_, "]"); }
  int priority() const { return type_check::detail::kAtom; }

 private:
  const Array* array_;
  int i_;
};

// A number or an expression that errors show as `text`: a text, or a function that makes one.
template <class E, class Text>
class Shown : public type_check::Lazy<Shown<E, Text>> {
 public:
  Shown(E expression, Text text) : expression_(std::move(expression)), text_(std::move(text)) {}
  decltype(auto) get() const { return expression_.get(); }
  void print(std::string& text) const {
    if constexpr (std::invocable<const Text&>)
      text += text_();
    else
      text += text_;
  }
  int priority() const { return type_check::detail::kAtom; }

 private:
  E expression_;
  Text text_;
};
template <class Value, class Text>
auto shown(Value value, Text text) {
  return Shown<type_check::detail::Lifted<Value>, Text>(type_check::detail::lift(std::move(value)),
                                                        std::move(text));
}

// An error's text: the line that names the function, the mismatch, and the advice, if any.
[[noreturn, gnu::cold]] void refuse_types(const std::string& label, const InvalidType& mismatch,
                                          const std::string& advice);

// The requirements of one call. `label` names the function; `advice` (advice.h) says what to do
// about an input that does not fit. Both are texts, or functions that are called for an error only.
template <class Label, class Advice = const char*>
class Checks {
 public:
  explicit Checks(Label label, Advice advice = {})
      : label_(std::move(label)), advice_(std::move(advice)) {}

  // Throws the InvalidType of the first comparison that does not hold; those after it are not
  // evaluated.
  template <std::derived_from<type_check::detail::Condition>... Comparisons>
  void require(const Comparisons&... comparisons) const {
    try {
      (comparisons.require(), ...);
    } catch (const InvalidType& mismatch) {
      refuse_types(text_of(label_), mismatch, text_of(advice_));
    }
  }
  // Input i must be of a floating dtype.
  void require_float(const Array& x, int i = 0) const {
    require(TypeOf(x, i).dtype().kind() == 'f');
  }

 private:
  template <class Text>
  static std::string text_of(const Text& text) {
    if constexpr (std::invocable<const Text&>)
      return text();
    else
      return text == nullptr ? std::string() : std::string(text);
  }
  Label label_;
  Advice advice_;
};

}  // namespace catena::functions
