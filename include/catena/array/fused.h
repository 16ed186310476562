// Fused: the stand-in for an array while a fused function (fusion.h) is recorded.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "catena/array/elementwise.h"
#include "catena/array/reduction.h"
#include "catena/kernels/elementwise.h"

// The operations that stand-ins take part in, by name.
namespace catena::ops {

#define CATENA_NAME1(name) extern const ElementwiseOp name;
#define CATENA_NAME2(name) extern const ElementwiseOp name;
#define CATENA_NAME3(name) extern const ElementwiseOp name;
#include "catena/kernels/detail/elementwise_names.def"

}  // namespace catena::ops

namespace catena {

class Fused;

namespace detail {
struct FusionGraph;

// The recorded node of a stand-in, or a number.
struct FusedRef {
  std::shared_ptr<FusionGraph> graph;  // null: a number
  int node = -1;
  Scalar scalar;
};
Fused record(ElementwiseOp op, std::initializer_list<FusedRef> operands);
Fused record_cast(const FusedRef& x, Dtype dtype);
Fused record_reduction(const char* name, const FusedRef& x, const ReduceOptions& options);
[[noreturn]] void refuse_operation(const char* name);
[[noreturn]] void refuse_value(const char* what);
}  // namespace detail

// An operand inside a fused function: a stand-in or a host number (weak in promotion).
class FusedOperand {
 public:
  FusedOperand(const Fused& value);
  FusedOperand(const Scalar& scalar) { ref_.scalar = scalar; }
  template <class T>
  requires std::is_arithmetic_v<T> FusedOperand(T value) { ref_.scalar = Scalar(value); }
  const detail::FusedRef& ref() const { return ref_; }

 private:
  detail::FusedRef ref_;
};

// A stand-in for an array inside a fused function. It takes every element-wise function of
// math.h, the operators, where, clip, isclose and astype, and sum, prod, mean, amax, amin, all, any
// as the last step.
//
// It has no elements and no shape. Whatever reads a value (a condition, item) throws a ValueError
// that names it, and so does an operation that is not element-wise. Operations on a reduced value
// are errors too: apply them to the result.
class Fused {
 public:
  Fused() = default;
  explicit Fused(detail::FusedRef ref) : ref_(std::move(ref)) {}
  const detail::FusedRef& ref() const { return ref_; }

  // A cast. A stand-in has no value: truth and item() throw ValueError while the function is
  // recorded.
  Fused astype(Dtype dtype) const { return detail::record_cast(ref_, dtype); }
  explicit operator bool() const { detail::refuse_value("a condition"); }
  Scalar item() const { detail::refuse_value("item()"); }
  template <class T>
  T item() const {
    detail::refuse_value("item()");
  }

#define CATENA_NAME1(name) \
  friend Fused name(const FusedOperand& x) { return detail::record(ops::name, {x.ref()}); }
#define CATENA_NAME2(name)                                            \
  friend Fused name(const FusedOperand& x1, const FusedOperand& x2) { \
    return detail::record(ops::name, {x1.ref(), x2.ref()});           \
  }
#define CATENA_NAME3(name)                                                                    \
  friend Fused name(const FusedOperand& x1, const FusedOperand& x2, const FusedOperand& x3) { \
    return detail::record(ops::name, {x1.ref(), x2.ref(), x3.ref()});                         \
  }
#include "catena/kernels/detail/elementwise_names.def"
// Other names of these functions.
#define CATENA_ALIAS(alias, name) \
  friend Fused alias(const FusedOperand& x) { return detail::record(ops::name, {x.ref()}); }
  CATENA_ALIAS(abs, absolute)
  CATENA_ALIAS(radians, deg2rad)
  CATENA_ALIAS(degrees, rad2deg)
#undef CATENA_ALIAS
#define CATENA_ALIAS(alias, name)                                      \
  friend Fused alias(const FusedOperand& x1, const FusedOperand& x2) { \
    return detail::record(ops::name, {x1.ref(), x2.ref()});            \
  }
  CATENA_ALIAS(true_divide, divide)
  CATENA_ALIAS(mod, remainder)
#undef CATENA_ALIAS

#define CATENA_OPERATOR(symbol, name)                                            \
  friend Fused operator symbol(const FusedOperand& x1, const FusedOperand& x2) { \
    return detail::record(ops::name, {x1.ref(), x2.ref()});                      \
  }
#include "catena/array/detail/operators.def"
  // In a fused function these create a new value; no array is written.
#define CATENA_INPLACE(symbol, name)                                 \
  friend Fused& operator symbol(Fused& x1, const FusedOperand& x2) { \
    return x1 = detail::record(ops::name, {x1.ref(), x2.ref()});     \
  }
#include "catena/array/detail/inplace_operators.def"
  // With one bound only.
  friend Fused clip(const FusedOperand& x, std::nullopt_t, const FusedOperand& high) {
    return detail::record(ops::minimum, {x.ref(), high.ref()});
  }
  friend Fused clip(const FusedOperand& x, const FusedOperand& low, std::nullopt_t) {
    return detail::record(ops::maximum, {x.ref(), low.ref()});
  }
  // As isclose of logic.h: compared in the common dtype, integers as float64.
  friend Fused isclose(const FusedOperand& x1, const FusedOperand& x2, double rtol = 1e-5,
                       double atol = 1e-8, bool equal_nan = false) {
    const auto as_float = [&](bool first) {
      const FusedOperand choice(first);
      return detail::record(ops::where, {choice.ref(), x1.ref(), x2.ref()}) * 1.0;
    };
    const Fused x = as_float(true), y = as_float(false);
    const Fused within = absolute(x - y) <= absolute(y) * rtol + atol;
    const Fused close =
        logical_or(logical_and(within, logical_and(isfinite(x), isfinite(y))), x == y);
    return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
  }
  friend Fused operator-(const Fused& x) { return negative(x); }
  friend Fused operator+(const Fused& x) { return x; }
  friend Fused operator~(const Fused& x) { return invert(x); }

// Reductions, which must be the last step.
#define CATENA_REDUCTION(name)                                                               \
  friend Fused name(const Fused& x, const ReduceAxes& axes = none, YesNo keepdims = false) { \
    return detail::record_reduction(#name, x.ref(), ReduceOptions::over(axes, keepdims));    \
  }                                                                                          \
  friend Fused name(const Fused& x, const ReduceOptions& options) {                          \
    return detail::record_reduction(#name, x.ref(), options);                                \
  }
  CATENA_REDUCTION(sum)
  CATENA_REDUCTION(prod)
  CATENA_REDUCTION(mean)
  CATENA_REDUCTION(amax)
  CATENA_REDUCTION(amin)
  CATENA_REDUCTION(all)
  CATENA_REDUCTION(any)
#undef CATENA_REDUCTION

  // Not element-wise: the error names the function instead of listing the compiler's candidates.
#define CATENA_REFUSE(name)                         \
  template <class... Rest>                          \
  friend Fused name(const Fused&, const Rest&...) { \
    detail::refuse_operation(#name);                \
  }
  CATENA_REFUSE(matmul)
  CATENA_REFUSE(dot)
  CATENA_REFUSE(take)
  CATENA_REFUSE(sort)
  CATENA_REFUSE(argsort)
  CATENA_REFUSE(argmax)
  CATENA_REFUSE(argmin)
  CATENA_REFUSE(cumsum)
  CATENA_REFUSE(var)
  CATENA_REFUSE(reshape)
  CATENA_REFUSE(transpose)
  CATENA_REFUSE(softmax)
#undef CATENA_REFUSE

 private:
  detail::FusedRef ref_;
};

inline FusedOperand::FusedOperand(const Fused& value) : ref_(value.ref()) {
  CATENA_CHECK(ValueError, ref_.graph != nullptr, "fuse: a stand-in that was never assigned");
}

}  // namespace catena
