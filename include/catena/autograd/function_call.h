// FunctionCall: the object at the top of each function and layer call.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "catena/autograd/autocast.h"
#include "catena/autograd/function_hook.h"
#include "catena/core/call_scope.h"
#include "catena/core/graph.h"

namespace catena {

// One call of a differentiable function. Names it, takes its operands to variables, casts them, and
// records it:
//
//   Variable square(const VariableOperand& operand) {
//     FunctionCall call("Square", Autocast::kNone, operand);
//     const Array& x = call[0].data();
//     return call.record(x * x, [&] {
//       auto node = make_node<SquareNode>();
//       node->save_input(0, call[0]);
//       return node;
//     });
//   }
//
// Memory profiles, function hooks (timers, traces, checks of values), autocast and watchers of
// parameters act here and nowhere else, and captured graphs learn of the parameters that they use.
// A call that none of them watches pays three loads. The name outlives the call; errors, hooks and
// drawings show it.
class FunctionCall {
 public:
  // Operands are variables, what has variable(name) (VariableOperand), and pointers to variables,
  // null for one that is left out. ValueError for numbers and undefined ones. They stay alive until
  // the call's end.
  template <class... Operands>
  FunctionCall(const char* name, Autocast row, const Operands&... operands) : name_(name) {
    static_assert(sizeof...(Operands) <= kInline, "give more operands as a list");
    (take(operands), ...);
    begin(row);
  }
  // A list of operands, of any length.
  FunctionCall(const char* name, Autocast row, const Variables& operands)
      : FunctionCall(name, row, std::span<const Variable>(operands)) {}
  FunctionCall(const char* name, Autocast row, std::span<const Variable> operands);
  FunctionCall(const char* name, Autocast row, std::span<const Variable* const> operands);
  ~FunctionCall() {
    if (watch_) [[unlikely]]
      end();
  }
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  // The name, and with the path of its layer in the model where that is known: "Linear 'block/l1'".
  const char* name() const { return name_; }
  std::string label() const;
  // label() for checks, which call it for an error only.
  auto named() const {
    return [this] { return label(); };
  }
  // The operands that were given, in order, after casts.
  size_t size() const { return inputs_.size(); }
  const Variable& operator[](size_t i) const { return *inputs_[i]; }
  // A further operand, which the call has turned out to use. It outlives the call.
  void add(const Variable& operand) { take(operand); }
  // Operand i, or null if there are fewer.
  const Variable* optional(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  std::span<const Variable* const> inputs() const { return {inputs_.data(), inputs_.size()}; }
  // For hooks, at the end.
  std::span<const Array> outputs() const { return outputs_; }
  // DeviceError that names the call and its operands' devices unless all are on one.
  void require_one_device() const {
    for (size_t i = 1; i < inputs_.size(); ++i)
      if (inputs_[i]->device() != inputs_[0]->device()) [[unlikely]]
        refuse_devices();
  }

  // What the call multiplies and adds, as count() says, which runs only when hooks watch. Before
  // record(). A call that is made of others leaves it to them.
  template <class Count>
  void note_work(Count count) {
    if (watch_) [[unlikely]]
      set_work(count());
  }
  std::optional<int64_t> work() const;

  // Whether the call must be recorded: recording is on, no operand is volatile, and one wants a
  // gradient. Mixing volatile with recorded variables is a GradientError.
  bool is_recorded() const;
  // Ends the call: its result as a variable, connected to the operands by the node that make()
  // returns if the call must be recorded.
  template <class MakeNode>
  Variable record(const Array& output, MakeNode make) {
    note_outputs({&output, 1});
    if (!is_recorded()) return constant(output);
    return make()->connect(inputs(), output);
  }
  // The same with several outputs.
  template <class MakeNode>
  Variables record(const Arrays& outputs, MakeNode make) {
    note_outputs(outputs);
    if (is_recorded()) return make()->connect(inputs(), outputs);
    Variables results;
    for (const Array& output : outputs) results.push_back(constant(output));
    return results;
  }
  // Ends a call that is never recorded: volatile when an operand is.
  Variable unrecorded(const Array& output) {
    note_outputs({&output, 1});
    return constant(output);
  }

 private:
  static constexpr size_t kInline = 6;
  struct Watch;

  void take(const Variable& v) {
    if (!v.defined()) [[unlikely]]
      refuse_undefined();
    inputs_.push_back(&v);
  }
  void take(const Variable* v) {
    if (v != nullptr) take(*v);
  }
  template <class Operand>
  requires requires(const Operand& o) { o.variable(""); }
  void take(const Operand& operand) { inputs_.push_back(&operand.variable(name_)); }

  void begin(Autocast row) {
    if (detail::memory_profiles.load(std::memory_order_relaxed) != 0 ||
        detail::call_watchers.load(std::memory_order_relaxed) != 0 || cuda::anybody_captures())
        [[unlikely]]
      watch(row);
  }
  void note_outputs(std::span<const Array> outputs) {
    if (watch_) [[unlikely]]
      tell_outputs(outputs);
  }
  void watch(Autocast row);
  void set_work(int64_t multiply_adds);
  void tell_outputs(std::span<const Array> outputs);
  void end() noexcept;
  Variable constant(const Array& output) const;
  [[noreturn, gnu::cold]] void refuse_undefined() const;
  void refuse_freed_parameters() const;
  [[noreturn, gnu::cold]] void refuse_devices() const;

  const char* name_;
  boost::container::small_vector<const Variable*, kInline> inputs_;
  std::span<const Array> outputs_;
  Watch* watch_ = nullptr;  // while somebody watches
};

// A node for FunctionCall::record.
template <class Node, class... Arguments>
IntrusivePtr<Node> make_node(Arguments&&... arguments) {
  return IntrusivePtr<Node>(new Node(std::forward<Arguments>(arguments)...));
}

}  // namespace catena
