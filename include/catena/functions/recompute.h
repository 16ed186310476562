// recompute: a part of a model whose intermediate results are computed again in backward.
#pragma once

#include <functional>
#include <utility>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// f(inputs), of which the graph keeps the inputs alone: memory for time. In backward f runs again,
// with the random numbers (dropout), the autocast scope and the device of the first time, and a
// separate pass goes through it. Gradients and parameters are those of f(inputs) without recompute,
// bit for bit, over ranks, too.
//
//   h = F::recompute([&](const Variable& x) { return block(x); }, h);
//
// Inputs are variables, all of which f may use; variables that want gradients and come from outside
// in another way are a GradientError, but for parameters of layers, which f may use as it likes. f
// is copied, runs twice, and must do the same both times. Normalizations move their running
// averages in the first run only. The gradient cannot be differentiated again (GradientError).
//
// If nothing is recorded, it is f(inputs).
Variables recompute(std::function<Variables(const Variables&)> f, const Variables& inputs);

// Of one result.
template <class F, class... Inputs>
requires std::is_invocable_r_v<Variable, const F&, const Inputs&...> Variable
recompute(F f, const Inputs&... inputs) {
  const auto on_list = [f = std::move(f)](const Variables& xs) {
    return [&]<size_t... i>(std::index_sequence<i...>) { return Variables{Variable(f(xs[i]...))}; }
    (std::index_sequence_for<Inputs...>());
  };
  return recompute(std::function<Variables(const Variables&)>(on_list),
                   Variables{VariableOperand(inputs).variable("Recompute")...})[0];
}

}  // namespace catena::functions
