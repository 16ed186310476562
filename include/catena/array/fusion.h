// fuse: a chain of element-wise operations as one pass over memory.
//
//   auto length = fuse([](Fused x, Fused y) { return sqrt(x * x + y * y) * 0.5; });
//   Array z = length(a, b);
//
// The lambda is called once, with stand-ins that record what is done to them; from then on a call
// runs the recorded chain as one kernel on a GPU and as one loop on the CPU, block by block through
// the caches, so that memory is read and written once however long the chain is.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "catena/array/elementwise.h"
#include "catena/array/reduction.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena {

class Fused;

namespace detail {
struct FusionGraph;
struct FusionState;

// What a stand-in does, as it is recorded.
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

// A stand-in for an array inside a fused function: every element-wise function of math.h, the
// operators, where, clip, isclose and astype, and sum, prod, mean, amax, amin, all, any as the last
// step.
//
// It has no elements and no shape: whatever asks for a value (a condition, item) is a ValueError,
// and so is an operation that is not element-wise; both are named. Operations on a reduced value
// are refused too: do them on the result.
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
  // In a fused function these make a new value; nothing is written.
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
#define CATENA_REDUCTION(name)                                           \
  friend Fused name(const Fused& x, const ReduceOptions& options = {}) { \
    return detail::record_reduction(#name, x.ref(), options);            \
  }
  CATENA_REDUCTION(sum)
  CATENA_REDUCTION(prod)
  CATENA_REDUCTION(mean)
  CATENA_REDUCTION(amax)
  CATENA_REDUCTION(amin)
  CATENA_REDUCTION(all)
  CATENA_REDUCTION(any)
#undef CATENA_REDUCTION

  // Not element-wise: refused by name rather than by the compiler's list of candidates.
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

namespace detail {

using FusionTrace = std::function<std::vector<Fused>(std::span<const Fused>)>;
std::shared_ptr<FusionState> make_fusion_state();
// Calls `trace` for the first call with this number of arguments.
bool is_traced(const FusionState& state, size_t arguments);
void trace_fusion(FusionState& state, size_t arguments, const FusionTrace& trace);
std::vector<Array> run_fusion(FusionState& state, std::span<const Operand> arguments);

// The lambda's result as a list, and arrays in its form.
template <class Result>
struct FusedResult {
  static_assert(sizeof(Result) == 0,
                "a fused function returns a Fused, or a vector, array, pair or tuple of them");
};
template <>
struct FusedResult<Fused> {
  static std::vector<Fused> flatten(const Fused& x) { return {x}; }
  static Array form(std::vector<Array>&& list) { return std::move(list[0]); }
};
template <>
struct FusedResult<std::vector<Fused>> {
  static std::vector<Fused> flatten(const std::vector<Fused>& x) { return x; }
  static std::vector<Array> form(std::vector<Array>&& list) { return std::move(list); }
};
template <size_t N>
struct FusedResult<std::array<Fused, N>> {
  static std::vector<Fused> flatten(const std::array<Fused, N>& x) { return {x.begin(), x.end()}; }
  static std::array<Array, N> form(std::vector<Array>&& list) {
    std::array<Array, N> result;
    std::move(list.begin(), list.end(), result.begin());
    return result;
  }
};
template <class... F>
struct FusedResult<std::tuple<F...>> {
  static std::vector<Fused> flatten(const std::tuple<F...>& x) {
    return std::apply([](const auto&... value) { return std::vector<Fused>{value...}; }, x);
  }
  static auto form(std::vector<Array>&& list) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(std::move(list[I])...);
    }
    (std::index_sequence_for<F...>());
  }
};
template <>
struct FusedResult<std::pair<Fused, Fused>> {
  static std::vector<Fused> flatten(const std::pair<Fused, Fused>& x) {
    return {x.first, x.second};
  }
  static std::pair<Array, Array> form(std::vector<Array>&& list) {
    return {std::move(list[0]), std::move(list[1])};
  }
};

template <class>
using FusedFor = Fused;

}  // namespace detail

// What fuse returns. Copies share what was recorded and compiled; calls may come from any thread.
template <class F>
class FusedFunction {
 public:
  explicit FusedFunction(F function)
      : function_(std::move(function)), state_(detail::make_fusion_state()) {}

  // Arrays and host numbers, at most 10 with the results. Numbers are arguments of the kernel: a
  // new value compiles nothing. The results are new arrays; dtypes, shapes and rounding are those
  // of the same operations called one by one (reductions on a GPU add up in another order).
  // The first call for a combination of dtypes compiles on a GPU and is an Error while a graph is
  // captured; later ones may be captured. Results of different shapes, and reductions, take a
  // kernel each.
  // Errors: those of the recorded operations, DeviceError for arrays of different devices.
  template <class... A>
  requires(!(std::is_same_v<A, Fused> || ...)) auto operator()(const A&... arguments) const {
    constexpr bool fits = std::is_invocable_v<const F&, detail::FusedFor<A>...>;
    static_assert(fits,
                  "catena: the parameters of a fused function are of type Fused (or auto), one for "
                  "each argument of the call, and its lambda is not mutable; numbers are arguments "
                  "or constants, not parameters of type float");
    if constexpr (fits) return run(arguments...);
  }
  // Inside another fused function: becomes a part of it.
  template <class... A>
  requires((std::is_same_v<A, Fused> || ...)) auto operator()(const A&... arguments) const {
    return function_(arguments...);
  }

 private:
  template <class... A>
  auto run(const A&... arguments) const {
    using Result = std::decay_t<std::invoke_result_t<const F&, detail::FusedFor<A>...>>;
    CATENA_CHECK(ValueError, state_ != nullptr, "fuse: this function was moved from");
    if (!detail::is_traced(*state_, sizeof...(A))) {
      detail::trace_fusion(*state_, sizeof...(A), [this](std::span<const Fused> list) {
        return [&]<size_t... I>(std::index_sequence<I...>) {
          return detail::FusedResult<Result>::flatten(function_(list[I]...));
        }
        (std::index_sequence_for<A...>());
      });
    }
    const Operand list[] = {Operand(arguments)...};
    return detail::FusedResult<Result>::form(detail::run_fusion(*state_, list));
  }

  F function_;
  std::shared_ptr<detail::FusionState> state_;
};

// Makes a fused function of a lambda on Fused (or auto) parameters. What the lambda captures is
// read when it is recorded, in the first call: numbers that change are arguments.
template <class F>
FusedFunction<std::decay_t<F>> fuse(F&& function) {
  return FusedFunction<std::decay_t<F>>(std::forward<F>(function));
}

}  // namespace catena
