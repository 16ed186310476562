// Sequence: a model as a list of units that run one after the other, so that it can be cut into
// stages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/autograd/function_set.h"

namespace catena::parallel::pipeline {

namespace detail {

[[noreturn]] void fail_inputs(const std::string& unit, size_t given);

template <class Result>
Variables as_list(Result&& result) {
  if constexpr (std::is_convertible_v<Result, Variable>)
    return Variables{Variable(std::forward<Result>(result))};
  else
    return std::forward<Result>(result);
}

// f of one variable, or of a list of them; its result is one, or a list. The name is for errors.
template <class F>
Variables call_unit(const std::string& name, F& f, const Variables& xs) {
  if constexpr (std::is_invocable_v<F&, const Variable&>) {
    if (xs.size() != 1) fail_inputs(name, xs.size());
    return as_list(f(xs[0]));
  } else {
    static_assert(std::is_invocable_v<F&, const Variables&>,
                  "a unit takes one Variable or a list of them, Variables");
    return as_list(f(xs));
  }
}

// A function with parameters, as a layer that lists them as "0", "1", ...
template <class F>
class FunctionOfParameters final : public Parameterized {
 public:
  FunctionOfParameters(F f, Parameters parameters)
      : f_(std::move(f)), parameters_(std::move(parameters)) {}
  auto operator()(
      const Variable& x) requires std::is_invocable_v<F&, const Variable&, const Parameters&> {
    return f_(x, parameters_);
  }
  auto operator()(
      const Variables& xs) requires std::is_invocable_v<F&, const Variables&, const Parameters&> {
    return f_(xs, parameters_);
  }
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override {
    for (size_t i = 0; i < parameters_.size(); ++i)
      visitor(prefix + std::to_string(i), parameters_[i]);
  }

 private:
  F f_;
  Parameters parameters_;
};

}  // namespace detail

// Units are layers, sets of functions, functions and lambdas: what can be called with a Variable or
// with Variables, and gives one of these. Each takes what the one before gives.
//
//   Sequence model;
//   model.add(F::Linear(784, 1000)).add(F::relu).add("head", F::Linear(1000, 10));
//
// Parameters are listed under the names of their units ("head/W"); the name is the unit's position
// unless it is given. Units run long after they were added. So a unit in std::ref, which stays
// where it is, as a member of another model, and what a lambda refers to must outlive the sequence.
//
// Weights that several units list (the same Parameter) are tied: see untie. What a lambda captures
// is not seen. A unit of one's own gets the parameters of others, and lists them, by
//
//   model.add("embed", std::move(embed)) ...
//   model.add("head", [](const Variable& h, const Parameters& p) { return F::linear(h, p[0]); },
//             {W});  // with Parameter W = embed.W before
class Sequence : public Parameterized {
 public:
  Sequence() = default;
  Sequence(Sequence&&) noexcept = default;
  Sequence& operator=(Sequence&&) noexcept = default;

  // Appends a unit; a layer gets the sequence's train or test state, one in std::ref keeps its own.
  // ValueError when the name is taken or has a '/'.
  template <class Unit>
  Sequence& add(Unit unit) {
    return add(std::to_string(size()), std::move(unit));
  }
  template <class Unit>
  Sequence& add(const std::string& name, Unit unit) {
    using Callable = std::remove_reference_t<std::unwrap_reference_t<Unit>>;
    const auto kept = std::make_shared<Unit>(std::move(unit));
    constexpr bool is_own = std::is_same_v<Callable, Unit>;
    Callable* callable;
    if constexpr (is_own)
      callable = kept.get();
    else
      callable = &kept->get();
    Entry entry{
        name,
        [callable, name](const Variables& xs) { return detail::call_unit(name, *callable, xs); },
        kept, nullptr};
    if constexpr (std::is_base_of_v<Parameterized, Callable>) {
      entry.layer = callable;
      if (is_own) callable->train(training());
    }
    insert(std::move(entry));
    return *this;
  }

  // A function that takes (const Variable&, const Parameters&), or Variables: these parameters,
  // which other units may list as well. Its paths are "head/0", "head/1", ...
  template <class Unit>
  Sequence& add(const std::string& name, Unit unit, const Parameters& parameters) {
    return add(name, detail::FunctionOfParameters<Unit>(std::move(unit), parameters));
  }

  // The number of units, their names, and the layer behind one; null for plain functions.
  // ValueError for a unit that there is not.
  size_t size() const { return units_.size(); }
  const std::string& name(size_t unit) const { return entry(unit).name; }
  Parameterized* layer(size_t unit) const { return entry(unit).layer; }
  // Runs one unit. ValueError for more than one variable where it takes one.
  Variables run(size_t unit, const Variables& xs) const { return entry(unit).call(xs); }
  // Runs all of them. ValueError when there is none.
  Variables operator()(const Variables& xs) const;
  // Of one input and one result; ValueError when the last unit gives several.
  Variable operator()(const Variable& x) const;

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_functions(const FunctionVisitor& visitor) override;

  // A weight as several units see it: (unit, parameter), in the order of the units.
  using Tie = std::vector<std::pair<size_t, Parameter>>;
  // Gives each unit a copy of every weight that it shares with an earlier one, so that units can be
  // on different devices, and returns all ties, those of earlier calls included. Whoever trains the
  // units adds the gradients up and keeps the values equal, as Pipeline does, which calls this.
  // ValueError where two units are, or share, one layer object in std::ref; nothing has changed
  // then.
  const std::vector<Tie>& untie();

 private:
  struct Entry {
    std::string name;
    std::function<Variables(const Variables&)> call;
    std::shared_ptr<void> kept;
    Parameterized* layer;
  };
  void insert(Entry entry);
  const Entry& entry(size_t unit) const;
  void check_layers() const;

  std::vector<Entry> units_;
  std::vector<Tie> ties_;
};

}  // namespace catena::parallel::pipeline
