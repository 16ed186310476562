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
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "catena/array/fused.h"

namespace catena {

namespace detail {

struct FusionState;
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
