// The operations of type_expression.h: attributes, elements, calls, operators and comparisons, each
// storing its operands.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "catena/autograd/type_lazy.h"

namespace catena::type_check {

namespace detail {

// Prints an operand of an operator of this priority.
template <class E>
void append(std::string& text, const E& operand, int priority) {
  const bool wrapped = operand.priority() < priority;
  if (wrapped) text += '(';
  operand.print(text);
  if (wrapped) text += ')';
}

}  // namespace detail

// object.name
template <class E, class Getter>
class GetAttr : public Lazy<GetAttr<E, Getter>> {
 public:
  GetAttr(E object, const char* name, Getter getter)
      : object_(std::move(object)), name_(name), getter_(std::move(getter)) {}
  decltype(auto) get() const {
    using Result = decltype(std::invoke(getter_, object_.get()));
    // A member of a temporary must be copied.
    if constexpr (std::is_lvalue_reference_v<decltype(object_.get())>)
      return static_cast<Result>(std::invoke(getter_, object_.get()));
    else
      return std::remove_cvref_t<Result>(std::invoke(getter_, object_.get()));
  }
  void print(std::string& text) const {
    detail::append(text, object_, detail::kAtom);
    text.append(".").append(name_);
  }
  int priority() const { return detail::kAtom; }
  // "x.ndim": the text for the number of elements of x.shape.
  std::string length_text() const requires std::same_as<Getter, detail::ShapeOf> {
    return GetAttr<E, detail::NdimOf>(object_, "ndim", {}).str();
  }

 private:
  E object_;
  const char* name_;
  [[no_unique_address]] Getter getter_;
};

// object[key]
template <class E, class Key>
class GetItem : public Lazy<GetItem<E, Key>> {
 public:
  GetItem(E object, Key key) : object_(std::move(object)), key_(std::move(key)) {}
  auto get() const {
    const auto& object = object_.get();
    const auto& key = key_.get();
    if constexpr (detail::Number<detail::ValueOf<Key>> && !std::same_as<detail::ValueOf<E>, Array>)
      return object[detail::position(key, object.size(), [this] { return length_text(); })];
    else
      return detail::item(object, key);
  }
  void print(std::string& text) const {
    detail::append(text, object_, detail::kAtom);
    text += '[';
    key_.print(text);
    text += ']';
  }
  int priority() const { return detail::kAtom; }

 private:
  std::string length_text() const {
    if constexpr (requires { object_.length_text(); }) return object_.length_text();
    return "len(" + object_.str() + ")";
  }
  E object_;
  Key key_;
};

// function(a, b)
template <class F, class... Arguments>
class Call : public Lazy<Call<F, Arguments...>> {
 public:
  explicit Call(F function, Arguments... arguments)
      : function_(std::move(function)), arguments_(std::move(arguments)...) {}
  auto get() const {
    return std::apply(
        [this](const auto&... argument) { return std::invoke(function_.get(), argument.get()...); },
        arguments_);
  }
  void print(std::string& text) const {
    detail::append(text, function_, detail::kAtom);
    text += '(';
    const char* comma = "";
    const auto add = [&](const auto& argument) {
      text += std::exchange(comma, ", ");
      argument.print(text);
    };
    std::apply([&](const auto&... argument) { (add(argument), ...); }, arguments_);
    text += ')';
  }
  int priority() const { return detail::kAtom; }

 private:
  F function_;
  std::tuple<Arguments...> arguments_;
};

// -a, +a, ~a
template <class Op, class E>
class UnaryOperator : public Lazy<UnaryOperator<Op, E>> {
 public:
  explicit UnaryOperator(E operand) : operand_(std::move(operand)) {}
  auto get() const { return Op::of(detail::wide(operand_.get())); }
  void print(std::string& text) const {
    text += Op::kSymbol;
    detail::append(text, operand_, detail::kUnary);
  }
  int priority() const { return detail::kUnary; }

 private:
  E operand_;
};

// a + b, ...
template <class Op, class L, class R>
class BinaryOperator : public Lazy<BinaryOperator<Op, L, R>> {
 public:
  BinaryOperator(L left, R right) : left_(std::move(left)), right_(std::move(right)) {}
  auto get() const {
    const auto& a = left_.get();
    const auto& b = right_.get();
    if constexpr (requires { Op::refusal(detail::wide(b)); }) {
      if (const detail::Refusal* refusal = Op::refusal(detail::wide(b))) [[unlikely]]
        detail::refuse_operand(right_.str(), *refusal, detail::text_of(b));
    }
    return detail::apply<Op>(a, b);
  }
  void print(std::string& text) const {
    const int p = Op::kPriority;
    const bool right_first = p == detail::kPower;
    detail::append(text, left_, right_first ? p + 1 : p);
    detail::append_symbol(text, Op::kSymbol);
    detail::append(text, right_, right_first ? p : p + 1);
  }
  int priority() const { return Op::kPriority; }

 private:
  L left_;
  R right_;
};

// a == b, ...: the arguments of expect().
template <class Op, class L, class R>
class Comparison : public Lazy<Comparison<Op, L, R>>, public detail::Condition {
 public:
  Comparison(L left, R right) : left_(std::move(left)), right_(std::move(right)) {}
  bool get() const { return Op::of(left_.get(), right_.get()); }
  void print(std::string& text) const {
    detail::append(text, left_, detail::kBitOr);
    detail::append_symbol(text, Op::kSymbol);
    detail::append(text, right_, detail::kBitOr);
  }
  int priority() const { return detail::kCompare; }
  const L& left() const { return left_; }    // the first operand
  const R& right() const { return right_; }  // the second one
  // Throws InvalidType unless it holds.
  void require() const {
    if (!get()) [[unlikely]]
      refuse();
  }

 private:
  [[noreturn, gnu::noinline, gnu::cold]] void refuse() const {
    detail::refuse_comparison(this->str(), detail::text_of(left_.get()), Op::kInverse,
                              detail::text_of(right_.get()));
  }
  L left_;
  R right_;
};

}  // namespace catena::type_check
