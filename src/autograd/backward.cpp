// The reverse sweep over the recorded graph.
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/autograd/function_node.h"
#include "catena/autograd/parameter.h"
#include "catena/core/memory_profile.h"
#include "catena/core/profiler_range.h"

namespace catena {

// One run of Variable::backward: collects the reachable nodes, then visits them by descending
// creation number, so that equal programs run equal sequences of kernels.
struct BackwardPass {
  BackwardPass(const Variable& start, const BackwardOptions& options)
      : start_(start), options_(options) {
    static std::atomic<uint64_t> passes{0};
    visit_ = passes.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  void run() {
    seed();
    collect();
    std::optional<NoBackprop> off;
    std::optional<ForceBackprop> on;
    if (options_.create_graph)
      on.emplace();
    else
      off.emplace();
    for (BackwardObserver* o : observers_) o->backward_begins();
    for (FunctionNode* node : nodes_) step(*node);
    for (BackwardObserver* o : observers_) o->backward_ends();
  }

 private:
  // The gradient the sweep starts from.
  void seed() {
    VariableNode& y = *start_.node();
    if (!y.grad.defined()) {
      CATENA_CHECK(
          GradientError, start_.size() == 1, "backward: a variable of shape ", start_.shape(),
          " needs a gradient to start from; call set_grad first, or reduce it to one element");
      y.grad = ones_like(start_.data());
    }
    if (options_.create_graph && !y.grad_variable) {
      y.grad_variable = IntrusivePtr<VariableBody>(Variable::constant(y.grad).body());
    }
  }

  // Reachable nodes, iteratively; counts the uses of parameters and forgets old gradients.
  void collect() {
    add(start_.creator());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const auto& input : nodes_[i]->inputs()) {
        if (!input->requires_grad) continue;
        if (input->visit != visit_) first_sight(*input);
        ++input->pending_uses;
        if (input->creator) add(input->creator.get());
      }
    }
    std::sort(nodes_.begin(), nodes_.end(),
              [](FunctionNode* a, FunctionNode* b) { return a->sequence() > b->sequence(); });
  }

  void first_sight(VariableNode& v) {
    v.visit = visit_;
    v.pending_uses = 0;
    if (&v == start_.node()) return;
    if (!v.parameter) v.grad = Array();
    v.grad_variable.reset();
    if (v.parameter && v.parameter->observer) {
      BackwardObserver* o = v.parameter->observer;
      if (std::find(observers_.begin(), observers_.end(), o) == observers_.end())
        observers_.push_back(o);
    }
  }

  void add(FunctionNode* node) {
    if (node->visit_ == visit_) return;
    node->visit_ = visit_;
    CATENA_CHECK(GradientError, !options_.create_graph || node->is_differentiable(), node->label(),
                 ": create_graph asks to differentiate its backward, which is written on arrays; "
                 "compose it of functions of Variables, or write a FunctionNode "
                 "(function_node.h)");
    nodes_.push_back(node);
  }

  void step(FunctionNode& node) {
    const bool reached =
        std::any_of(node.outputs().begin(), node.outputs().end(),
                    [](VariableNode* v) { return v != nullptr && v->grad.defined(); });
    if (reached) {
      const bool profiled = detail::memory_profiles.load(std::memory_order_relaxed) != 0;
      const std::string name = profiled ? "backward of " + node.label() : std::string();
      const CallScope scope(name.c_str());
      BackwardContext context(node, options_.create_graph);
      node.backward(context);
    }
    for (const auto& input : node.inputs()) {
      if (input->requires_grad) done_with(*input);
    }
    if (!options_.retain_grad && reached) drop_output_gradients(node);
  }

  void done_with(VariableNode& v) {
    if (--v.pending_uses == 0 && v.parameter && v.parameter->observer)
      v.parameter->observer->gradient_is_final(*v.parameter);
  }

  void drop_output_gradients(FunctionNode& node) {
    for (VariableNode* v : node.outputs()) {
      if (v == nullptr || v == start_.node()) continue;
      v->grad = Array();
      v->grad_variable.reset();
    }
  }

  const Variable& start_;
  BackwardOptions options_;
  uint64_t visit_;
  std::vector<FunctionNode*> nodes_;  // kept alive by the start variable
  std::vector<BackwardObserver*> observers_;
};

void Variable::backward(const BackwardOptions& options) const {
  const VariableBody& body = known("Variable::backward");
  CATENA_CHECK(
      GradientError, !body.is_volatile,
      "backward: this variable is volatile: its function calls were not recorded; make the "
      "inputs with Volatile::off where gradients are wanted");
  CATENA_CHECK(
      GradientError, body.node && (body.node->creator || body.node->requires_grad),
      "backward: nothing was recorded for this variable: it was computed under NoBackprop, "
      "from constants alone (an array given as a variable is one; Variable(array) wants a "
      "gradient), "
      "or by a function without a gradient");
  if (!creator()) return;
  const ProfilerRange range("Variable::backward");
  BackwardPass(*this, options).run();
}

}  // namespace catena
