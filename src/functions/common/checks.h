// Requirements of a function on its inputs, stated once. The statements are comparisons of
// type_check.h: evaluating them costs a few compares, and their text is built only when one of them
// does not hold.
//
//   const TypeOf a(x, "a"), b(y, "b");
//   const Checks checks("MatMul", a, b);
//   checks.require_float(a);
//   checks.advised([&] { return dtype_advice(x, y); }).require(b.dtype() == a.dtype());
//   checks.advised([&] { return product_advice(x, y); }).require(a.shape(1) == b.shape(0));
//
// An error names the function, shows the comparison, lists all inputs and ends with the advice:
//
//   Invalid operation is performed in: MatMul (Forward)
//
//   Expect: a.shape[1] == b.shape[0]
//   Actual: 3 != 2
//   Inputs: a float32 (4, 3), b float32 (2, 5)
//   MatMul multiplies (m, k) by (k, n): ...
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "catena/autograd/type_check.h"

namespace catena::functions {

// An array and its name in errors: "x", or "xs[2]" of several.
struct NamedInput {
  const Array* array;  // null: an operand that may be left out, and is
  const char* name;
  int index;  // -1: of one

  std::string text() const;
};

// An attribute of an input, as type_check::InputType has it: "x.ndim". Refers to the input. Small
// enough for registers, so that a comparison that holds costs its compare and nothing more.
template <class Attribute>
class AttributeOf : public type_check::Lazy<AttributeOf<Attribute>> {
 public:
  explicit AttributeOf(const NamedInput& input, int axis = 0) : input_(&input), axis_(axis) {}
  auto get() const { return Attribute::get(*input_, axis_); }
  void print(std::string& text) const { text += input_->text() + Attribute::text(axis_); }
  int priority() const { return type_check::detail::kAtom; }

 private:
  const NamedInput* input_;
  int axis_;
};

struct Ndim {
  static int64_t get(const NamedInput& input, int) { return input.array->ndim(); }
  static std::string text(int axis);
};
struct DtypeAttribute {
  static Dtype get(const NamedInput& input, int) { return input.array->dtype(); }
  static std::string text(int axis);
};
struct Kind {
  static char get(const NamedInput& input, int) {
    return type_check::detail::KindOf()(input.array->dtype());
  }
  static std::string text(int axis);
};
struct Extent {
  static int64_t get(const NamedInput& input, int axis) {
    const Shape& shape = input.array->shape();
    if (static_cast<size_t>(axis) >= shape.size()) [[unlikely]]
      refuse_axis(input, axis);
    return shape[static_cast<size_t>(axis)];
  }
  static std::string text(int axis);
  [[noreturn, gnu::cold]] static void refuse_axis(const NamedInput& input, int axis);
};

// The type of an input. Its attributes refer to it.
class TypeOf : public NamedInput {
 public:
  TypeOf(const Array& array, const char* name, int index = -1) : TypeOf(&array, name, index) {}
  TypeOf(const Array* array, const char* name, int index = -1) : NamedInput{array, name, index} {}
  AttributeOf<DtypeAttribute> dtype() const { return AttributeOf<DtypeAttribute>(*this); }
  AttributeOf<Kind> kind() const { return AttributeOf<Kind>(*this); }  // "x.dtype.kind"
  AttributeOf<Ndim> ndim() const { return AttributeOf<Ndim>(*this); }
  // Of an axis that the array has: require its number of axes first.
  AttributeOf<Extent> shape(int axis) const { return AttributeOf<Extent>(*this, axis); }
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

// An error's text: the line that names the function, the mismatch, the inputs that there are, and
// the advice, if any.
[[noreturn, gnu::cold]] void refuse_types(const std::string& label, const InvalidType& mismatch,
                                          std::span<const TypeOf* const> inputs,
                                          const std::string& advice);
// What to do about an input that should be of a floating dtype.
std::string float_advice(const TypeOf& input);

// The requirements of one call. `label` names the function; `advice` (advice.h) says what is
// expected of the inputs, and what to do about one that does not fit. Both are texts, or functions
// that are called for an error only. `inputs` are those that errors list.
template <class Label, size_t kInputs, class Advice = const char*>
class Checks {
 public:
  template <std::same_as<const TypeOf>... Inputs>
  explicit Checks(Label label, Inputs&... inputs) : Checks(std::move(label), {&inputs...}, {}) {}
  Checks(Label label, const std::array<const TypeOf*, kInputs>& inputs, Advice advice)
      : label_(std::move(label)), inputs_(inputs), advice_(std::move(advice)) {}

  // The same with this advice for what is required of them.
  template <class Other>
  Checks<Label, kInputs, Other> advised(Other advice) const {
    return {label_, inputs_, std::move(advice)};
  }

  // Throws the InvalidType of the first comparison that does not hold; those after it are not
  // evaluated.
  template <std::derived_from<type_check::detail::Condition>... Comparisons>
  void require(const Comparisons&... comparisons) const {
    (require_one(comparisons), ...);
  }
  // The input must be of a floating dtype.
  void require_float(const TypeOf& input) const {
    const auto advice = [this, &input] {
      const std::string own = text_of(advice_);
      return own.empty() ? float_advice(input) : own;
    };
    advised(advice).require(input.kind() == 'f');
  }

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
      refuse_types(text_of(checks.label_), mismatch, checks.inputs_, text_of(checks.advice_));
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
  std::array<const TypeOf*, kInputs> inputs_;
  Advice advice_;
};
template <class Label, class... Inputs>
Checks(Label, Inputs&...) -> Checks<Label, sizeof...(Inputs)>;

}  // namespace catena::functions
