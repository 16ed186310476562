// Lazily evaluated expressions over the types of arrays: the language in which type checks
// (type_check.h) state what they expect.
//
// An expression is a value type: a leaf (Variable, Constant) or an operation that stores its
// operands. Building one evaluates nothing and allocates nothing, so a check that passes costs a
// few comparisons. eval() computes, str() prints the source form with only the necessary
// parentheses. Expressions own their operands: they may be kept, copied and used in any thread.
//
//   x.shape(0) * 4 + 1, -n, pow(n, 2), x.shape()[Slice(1, none)], prod(x.shape()), f(x.ndim(), 2)
//
// Operators, their priorities and texts are Python's: | ^ & << >> + - * / % - + ~ pow, comparisons.
// `/` of integers rounds down and prints as //, true_divide prints as /, pow prints as ** and is
// right associative. Integers are int64 and wrap. Division by zero, negative exponents of integers
// and shifts by less than 0 or more than 63 are an InvalidType. Operands may be numbers, dtypes,
// kinds ('f'), strings and shapes as well as expressions.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "catena/autograd/type_operations.h"

namespace catena::type_check {

// Any expression of one value type, for operations that are chosen at run time:
// Expr<int64_t> n = wide ? x.shape(0) * 2 : x.shape(0) + 1. Allocates.
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
// floor_divide for integers, else true_divide.
template <class L, class R>
requires(Expression<L> || Expression<R>) &&
    detail::Operands<detail::TrueDivide, L, R> auto operator/(L&& l, R&& r) {
  if constexpr (detail::Whole<detail::ValueOf<detail::Lifted<L>>> &&
                detail::Whole<detail::ValueOf<detail::Lifted<R>>>)
    return floor_divide(std::forward<L>(l), std::forward<R>(r));
  else
    return true_divide(std::forward<L>(l), std::forward<R>(r));
}

// Comparisons, the arguments of expect().
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
