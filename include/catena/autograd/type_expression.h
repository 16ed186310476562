// Expressions over the types of arrays that are evaluated when they are asked: the language in
// which type checks (type_check.h) say what they expect.
//
// An expression is a value type: a leaf (Variable, Constant) or an operation with its operands
// inside. Building one evaluates nothing and allocates nothing, so that a check that passes costs a
// few comparisons. eval() computes, str() writes the source form with the parentheses that are
// needed. Expressions hold what they need: they may be kept, copied and evaluated in any thread.
//
//   x.shape(0) * 4 + 1, -n, pow(n, 2), x.shape()[Slice(1, none)], prod(x.shape()), f(x.ndim(), 2)
//
// Operators, their priorities and texts are Python's: | ^ & << >> + - * / % - + ~ pow, comparisons.
// `/` of integers rounds down and is written //, true_divide is written /, pow is written ** and is
// right associative. Integers are int64 and wrap. Division by zero, negative exponents of integers
// and shifts by less than 0 or more than 63 are an InvalidType. Operands may be numbers, dtypes,
// kinds ('f'), texts and shapes as well as expressions.
#pragma once

#include <tuple>

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

// An operand as an expression: a number, a dtype, a text, ... is a Constant.
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
  // The value now.
  auto eval() const { return self().get(); }
  // The source form: "in_types[0].shape[1] * 4".
  std::string str() const {
    std::string text;
    self().print(text);
    return text;
  }
  // Neither `if (e)` nor e && f nor !e: an expression is no value.
  explicit operator bool() const = delete;  // for its value write e.eval()

  // Attributes of types and of arrays: shape, ndim, size (elements; of a TypeInfoTuple: types),
  // dtype, and kind of a dtype: 'b', 'i', 'u', 'f'. shape(i) is shape()[i]; negative axes count
  // from the end; an axis that is not there is an InvalidType on evaluation.
  // (Templates, for clang 14 would decide on the conditions before Self is complete.)
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
  // Any other one: attr("pad", &Options::pad), or with a function of the value.
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

// A value that is written as it is.
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

// A value that is written as a name: a number, a shape, an array, a function, ...
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
// What Variable(value, name) holds: a copy of the value, or a Shape for a list in braces.
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

namespace detail {

// The text of an operand within an operator of this priority.
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
    // A part of a temporary must be copied.
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
  // "x.ndim": what says how many elements x.shape has.
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

// a == b, ...: what expect() takes.
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

// Any expression of one value type, for where the operations are not known when the program is
// compiled: Expr<int64_t> n = wide ? x.shape(0) * 2 : x.shape(0) + 1. Allocates.
template <class T>
class Expr : public Lazy<Expr<T>> {
 public:
  template <Expression E>
  requires(!std::same_as<E, Expr> && std::convertible_to<detail::ValueOf<E>, T>) Expr(E expression)
      : holder_(std::make_shared<Holder<E>>(std::move(expression))) {}
  T get() const { return holder_->get(); }
  void print(std::string& text) const { holder_->print(text); }
  int priority() const { return holder_->priority(); }

 private:
  struct AnyHolder {
    virtual ~AnyHolder() = default;
    virtual T get() const = 0;
    virtual void print(std::string& text) const = 0;
    virtual int priority() const = 0;
  };
  template <class E>
  struct Holder final : AnyHolder {
    explicit Holder(E e) : expression(std::move(e)) {}
    T get() const override { return expression.get(); }
    void print(std::string& text) const override { expression.print(text); }
    int priority() const override { return expression.priority(); }
    E expression;
  };
  std::shared_ptr<const AnyHolder> holder_;
};

// Operators ----------------------------------------------------------------------------------

// Unary operators of expressions.
#define CATENA_TYPE_UNARY(symbol, Op)                                             \
  template <Expression E>                                                         \
  requires detail::AppliesToOne<detail::Op, detail::ValueOf<E>>                   \
  auto operator symbol(E&& e) {                                                   \
    return UnaryOperator<detail::Op, std::remove_cvref_t<E>>(std::forward<E>(e)); \
  }
CATENA_TYPE_UNARY(-, Negative)
CATENA_TYPE_UNARY(+, Positive)
CATENA_TYPE_UNARY(~, Invert)
#undef CATENA_TYPE_UNARY

// Binary operators of expressions; a plain value counts as a constant. Division rounds down for
// integers.
#define CATENA_TYPE_BINARY(function, Op)                                     \
  template <class L, class R>                                                \
  requires(Expression<L> || Expression<R>) &&                                \
      detail::Operands<detail::Op, L, R> auto function(L&& l, R&& r) {       \
    return BinaryOperator<detail::Op, detail::Lifted<L>, detail::Lifted<R>>( \
        detail::lift(std::forward<L>(l)), detail::lift(std::forward<R>(r))); \
  }
CATENA_TYPE_BINARY(operator+, Add)
CATENA_TYPE_BINARY(operator-, Subtract)
CATENA_TYPE_BINARY(operator*, Multiply)
CATENA_TYPE_BINARY(operator%, Modulo)
CATENA_TYPE_BINARY(operator<<, ShiftLeft)
CATENA_TYPE_BINARY(operator>>, ShiftRight)
CATENA_TYPE_BINARY(operator&, BitAnd)
CATENA_TYPE_BINARY(operator^, BitXor)
CATENA_TYPE_BINARY(operator|, BitOr)
CATENA_TYPE_BINARY(true_divide, TrueDivide)
CATENA_TYPE_BINARY(pow, Power)
CATENA_TYPE_BINARY(floor_divide, FloorDivide)
#undef CATENA_TYPE_BINARY
// Of integers floor_divide, else true_divide.
template <class L, class R>
requires(Expression<L> || Expression<R>) &&
    detail::Operands<detail::TrueDivide, L, R> auto operator/(L&& l, R&& r) {
  if constexpr (detail::Whole<detail::ValueOf<detail::Lifted<L>>> &&
                detail::Whole<detail::ValueOf<detail::Lifted<R>>>)
    return floor_divide(std::forward<L>(l), std::forward<R>(r));
  else
    return true_divide(std::forward<L>(l), std::forward<R>(r));
}

// Comparisons, whose results are what expect() takes.
#define CATENA_TYPE_COMPARISON(symbol, Op)                                       \
  template <class L, class R>                                                    \
  requires(Expression<L> || Expression<R>) &&                                    \
      detail::Comparables<detail::Op, L, R> auto operator symbol(L&& l, R&& r) { \
    return Comparison<detail::Op, detail::Lifted<L>, detail::Lifted<R>>(         \
        detail::lift(std::forward<L>(l)), detail::lift(std::forward<R>(r)));     \
  }
CATENA_TYPE_COMPARISON(==, Equal)
CATENA_TYPE_COMPARISON(!=, NotEqual)
CATENA_TYPE_COMPARISON(<, Less)
CATENA_TYPE_COMPARISON(<=, LessEqual)
CATENA_TYPE_COMPARISON(>, Greater)
CATENA_TYPE_COMPARISON(>=, GreaterEqual)
#undef CATENA_TYPE_COMPARISON

// The product of the elements of a shape; 1 for an empty one.
template <Expression E>
requires std::same_as<detail::ValueOf<E>, Shape>
auto prod(E&& shape) { return Variable(&detail::product, "prod")(std::forward<E>(shape)); }

// Prints str().
template <Expression E>
std::ostream& operator<<(std::ostream& os, const E& e) {
  return os << e.str();
}

}  // namespace catena::type_check
