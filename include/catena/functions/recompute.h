// recompute: a part of a model whose intermediate results are computed again in backward.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/autograd/kept_results.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

using catena::Keep;

namespace detail {

// The words of a function object, among which are the addresses of what a lambda captures by
// reference. None of one that owns anything, or whose padding the compiler cannot clear: what is
// there by chance might look like an address.
template <class F>
std::vector<const void*> captured_words(const F& f) {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
  constexpr bool is_plain = std::is_trivially_copyable_v<F>;
#else
  constexpr bool is_plain = std::has_unique_object_representations_v<F>;
#endif
  std::vector<const void*> words;
  if constexpr (is_plain && alignof(F) == alignof(void*) && std::is_class_v<F>) {
    F plain = f;
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&plain);
#endif
    words.resize(sizeof(F) / sizeof(void*));
    std::memcpy(words.data(), static_cast<const void*>(&plain), sizeof(F));
  }
  return words;
}

}  // namespace detail

// A function of variables that recompute keeps until backward.
struct RecomputedFunction {
  template <class F>
  requires std::is_invocable_r_v<Variables, F&, const Variables&> RecomputedFunction(F f)
      : captured(detail::captured_words(f)), call(std::move(f)) {}
  std::vector<const void*> captured;
  std::function<Variables(const Variables&)> call;
};

// What recompute keeps between forward and backward beside the inputs of f.
struct RecomputeOptions {
  // kAttention: what attention gave in the first run, and its statistics. kProducts: also what
  // linear, feed_forward, matmul, batch_matmul and convolutions gave, and functions that are made
  // of these; recurrent layers and linear_cross_entropy are computed again. kEverything: f(inputs)
  // without recompute.
  Keep keep = Keep::kNothing;
  // Chosen by the library instead: the most of kNothing, kAttention and kProducts whose bytes, with
  // those of the results of f, are no more than these. ValueError if the results alone are more.
  std::optional<size_t> budget = {};
  // Between forward and backward what is kept is in pinned host memory: inputs of f that other
  // functions have computed, and what `keep` names. Copies run beside the work of the device, those
  // to the host while the next part runs forward, those back while the part behind runs backward,
  // if its input is a result of this one, as in a RecomputePlan. Device memory is let go one part
  // later. Arrays on CPUs stay where they are. Nobody may write to an input until its copy is on
  // the host; a write that is found is a GradientError in backward. OutOfMemoryError where the host
  // has no pinned memory left. ValueError with a budget, with kEverything, and while a graph is
  // captured. Inside of another recompute it has no effect.
  bool offload = false;
};

// f(inputs), of which the graph keeps the inputs, and what the options say: memory for time. In
// backward f runs again, with the random numbers (dropout), the autocast scope and the device of
// the first time, and a separate pass goes through it. Functions whose results are kept hand them
// out instead of computing them. Gradients and parameters are those of f(inputs) without recompute,
// bit for bit, over ranks, too. One exception: where a GPU computes GELU inside of a product in 16
// bits, feed_forward with kProducts makes the gradient of W2 of numbers that were rounded once
// more.
//
//   h = F::recompute([this, scale](const Variable& x) { return block(x) * scale; }, h);
//   h = F::recompute(block, {.keep = Keep::kAttention}, h);
//
// f runs again when the function that calls recompute has returned, so what f refers to must live
// until backward. Capture local variables by value, and layers, which a capture by value would
// copy, through `this` or a pointer. Where a lambda can be seen to refer to a local variable of a
// function that has returned, backward is a GradientError; not all that do can be seen.
//
// Inputs are variables, all of which f may use; variables that want gradients and come from outside
// in another way are a GradientError, but for parameters of layers, which f may use as it likes. f
// is copied, runs twice, and must do the same both times: if its second run calls other functions
// than those whose results are kept, that is a ValueError, and if somebody has written to a kept
// result, a GradientError. Normalizations move their running averages in the first run only. The
// gradient cannot be differentiated again (GradientError).
//
// If nothing is recorded, it is f(inputs).
Variables recompute(RecomputedFunction f, const Variables& inputs);
Variables recompute(RecomputedFunction f, const RecomputeOptions& options, const Variables& inputs);

// Of one result.
template <class F, class... Inputs>
requires std::is_invocable_r_v<Variable, const F&, const Inputs&...> Variable
recompute(F f, const RecomputeOptions& options, const Inputs&... inputs) {
  const auto on_list = [f = std::move(f)](const Variables& xs) {
    return [&]<size_t... i>(std::index_sequence<i...>) { return Variables{Variable(f(xs[i]...))}; }
    (std::index_sequence_for<Inputs...>());
  };
  return recompute(RecomputedFunction(on_list), options,
                   Variables{VariableOperand(inputs).variable("Recompute")...})[0];
}
template <class F, class... Inputs>
requires std::is_invocable_r_v<Variable, const F&, const Inputs&...> Variable
recompute(F f, const Inputs&... inputs) {
  return recompute(std::move(f), RecomputeOptions(), inputs...);
}

}  // namespace catena::functions
