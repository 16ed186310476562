// Helpers of host_kernel.h: the types of a lambda's parameters, calls from several threads, and the
// rows of a loop over which a lambda is called.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

// Declares that the iterations of the next loop are independent. host_kernel.h undefines it.
#ifdef __clang__
#define CATENA_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define CATENA_IVDEP _Pragma("GCC ivdep")
#endif

namespace catena::detail {

// n elements of a loop: addresses and byte strides of the operands.
struct HostRow {
  char* const* pointers;
  const int64_t* strides;
  int64_t n;
  int64_t first, size;  // C-order index of the first element, elements of the loop
};

// The signature of the call for one element, as `R(P...)`.
template <class F>
struct FunctionOf;
template <class R, class... P, bool no_throw>
struct FunctionOf<R (*)(P...) noexcept(no_throw)> {
  using Type = R(P...);
};
template <class R, class C, class... P, bool no_throw>
struct FunctionOf<R (C::*)(P...) noexcept(no_throw)> {
  using Type = R(P...);
};
template <class R, class C, class... P, bool no_throw>
struct FunctionOf<R (C::*)(P...) const noexcept(no_throw)> {
  using Type = R(P...);
};
template <class F>
constexpr auto function_of() {
  constexpr bool plain = std::is_pointer_v<F> || requires { &F::operator(); };
  static_assert(plain,
                "catena: a kernel lambda must name the types of its parameters, such as [](float "
                "x, float& y) {...}; for a lambda with auto or template parameters write an "
                "ElementwiseKernel with on_cpu<float, double>(lambda)");
  if constexpr (std::is_pointer_v<F>)
    return FunctionOf<F>();
  else if constexpr (plain)
    return FunctionOf<decltype(&F::operator())>();
  else
    return FunctionOf<void (*)()>();
}
template <class F>
using FunctionType = typename decltype(function_of<F>())::Type;

// A mutable lambda as a const function: each call uses a fresh copy.
template <class F>
struct FreshCopy {
  F function;
  template <class... A>
  decltype(auto) operator()(A&&... arguments) const {
    return F(function)(std::forward<A>(arguments)...);
  }
};
// A function object that several threads may call with these arguments.
template <class... A, class F>
auto constant_function(F function) {
  if constexpr (std::is_invocable_v<const F&, A...>)
    return function;
  else
    return FreshCopy<F>{std::move(function)};
}

}  // namespace catena::detail
