// What a function requires of its inputs, stated once. The statements are comparisons of
// type_check.h: evaluating them costs a few compares, and their text is built only when one of them
// does not hold.
//
//   const Checks checks("MatMul");
//   const TypeOf a(x, 0), b(y, 1);
//   checks.require(a.kind() == 'f', b.dtype() == a.dtype(), a.ndim() == 2, b.ndim() == 2);
//   checks.require(a.shape(1) == b.shape(0));
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

#include "catena/autograd/type_check.h"

namespace catena::functions {

// An attribute of input i, as type_check::InputType has it: "in_types[i].ndim". Refers to the
// array. Small enough for registers, so that a comparison that holds costs its compare and nothing
// more.
template <class Attribute>
class AttributeOf : public type_check::Lazy<AttributeOf<Attribute>> {
 public:
  AttributeOf(const Array& array, int i, int axis = 0)
      : array_(&array), i_(static_cast<int16_t>(i)), axis_(static_cast<int16_t>(axis)) {}
  auto get() const { return Attribute::get(*array_, i_, axis_); }
  void print(std::string& text) const { text += Attribute::text(i_, axis_); }
  int priority() const { return type_check::detail::kAtom; }

 private:
  const Array* array_;
  int16_t i_, axis_;
};

struct Ndim {
  static int64_t get(const Array& a, int, int) { return a.ndim(); }
  static std::string text(int i, int axis);
};
struct DtypeAttribute {
  static Dtype get(const Array& a, int, int) { return a.dtype(); }
  static std::string text(int i, int axis);
};
struct Kind {
  static char get(const Array& a, int, int) { return type_check::detail::KindOf()(a.dtype()); }
  static std::string text(int i, int axis);
};
struct Extent {
  static int64_t get(const Array& a, int i, int axis) {
    const Shape& shape = a.shape();
    if (static_cast<size_t>(axis) >= shape.size()) [[unlikely]]
      refuse_axis(i, shape.ndim(), axis);
    return shape[static_cast<size_t>(axis)];
  }
  static std::string text(int i, int axis);
  [[noreturn, gnu::cold]] static void refuse_axis(int i, int ndim, int axis);
};

// The type of input i, "in_types[i]".
class TypeOf {
 public:
  TypeOf(const Array& array, int i) : array_(&array), i_(i) {}
  AttributeOf<DtypeAttribute> dtype() const { return {*array_, i_}; }
  AttributeOf<Kind> kind() const { return {*array_, i_}; }  // "in_types[i].dtype.kind"
  AttributeOf<Ndim> ndim() const { return {*array_, i_}; }
  // Of an axis that the array has: require its number of axes first.
  AttributeOf<Extent> shape(int axis) const { return {*array_, i_, axis}; }

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
    (require_one(comparisons), ...);
  }
  // Input i must be of a floating dtype.
  void require_float(const Array& x, int i = 0) const { require(TypeOf(x, i).kind() == 'f'); }

 private:
  template <class Op, class L, class R>
  void require_one(const type_check::Comparison<Op, L, R>& comparison) const {
    if (!comparison.get()) [[unlikely]]
      refuse<Op>(*this, comparison.left(), comparison.right());
  }
  // Takes the operands by value: by reference each comparison would need memory although it holds.
  template <class Op, class L, class R>
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse(const Checks& checks, L left, R right) {
    try {
      type_check::Comparison<Op, L, R>(left, right).require();
    } catch (const InvalidType& mismatch) {
      refuse_types(text_of(checks.label_), mismatch, text_of(checks.advice_));
    }
    __builtin_unreachable();  // it does not hold
  }
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
