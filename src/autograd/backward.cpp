// The reverse sweep over the recorded graph.
#include "catena/autograd/backward.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/contribute.h"
#include "catena/array/creation.h"
#include "catena/autograd/function_node.h"
#include "catena/autograd/parameter_state.h"
#include "catena/core/memory_profile.h"
#include "catena/core/profiler_range.h"

namespace catena {

// One sweep: collects the nodes behind the starts, then visits them by descending creation number,
// so that equal programs run equal sequences of kernels. Whoever makes it keeps the starts alive.
class BackwardPass {
 public:
  // A vertex and the gradient that it starts with.
  struct Start {
    VariableNode* vertex;
    Variable gradient;
  };

  BackwardPass(std::span<const Start> starts, const BackwardOptions& options)
      : starts_(starts), options_(options) {}
  // From one result that has its gradient already, and keeps it.
  BackwardPass(VariableNode& start, const BackwardOptions& options)
      : kept_(&start), options_(options) {}

  void run() {
    std::optional<NoBackprop> off;
    std::optional<ForceBackprop> on;
    if (options_.create_graph)
      on.emplace();
    else
      off.emplace();
    const GradVariables hand_over(*this);
    collect();
    tell(&BackwardObserver::backward_begins);
    start_parameters();
    for (FunctionNode* node : nodes_) step(*node);
    tell(&BackwardObserver::backward_ends);
  }

 private:
  // The starts with their gradients, and all nodes behind them, iteratively; counts the uses of
  // parameters and forgets old gradients.
  void collect() {
    if (kept_) {
      kept_->visit = visit_;
      add(kept_->creator.get());
    }
    for (const Start& start : starts_) see(*start.vertex);
    for (const Start& start : starts_) {
      if (start.vertex->parameter)
        ++start.vertex->pending_uses;
      else
        contribute(*start.vertex, start.gradient, options_.create_graph);
      if (start.vertex->creator) add(start.vertex->creator.get());
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const auto& input : nodes_[i]->inputs()) {
        if (!input->requires_grad) continue;
        see(*input);
        ++input->pending_uses;
        if (input->creator) add(input->creator.get());
      }
    }
    std::sort(nodes_.begin(), nodes_.end(),
              [](FunctionNode* a, FunctionNode* b) { return a->sequence() > b->sequence(); });
  }

  void see(VariableNode& v) {
    if (v.visit == visit_) return;
    v.visit = visit_;
    v.pending_uses = 0;
    v.forget_grad_variable();
    if (options_.create_graph) seen_.emplace_back(&v);
    if (v.parameter) {
      see_observers(*v.parameter);
    } else {
      v.grad = Array();
      v.grad_is_own = false;
    }
  }

  void see_observers(const ParameterState& parameter) {
    for (const ObserverPtr& o : parameter.observers()) {
      if (o->observer && !knows(o)) observers_.push_back(o);
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

  // Parameters among the starts: after backward_begins, which may give their gradients new places.
  void start_parameters() {
    for (const Start& start : starts_) {
      if (!start.vertex->parameter) continue;
      contribute(*start.vertex, start.gradient, options_.create_graph);
      done_with(*start.vertex);
    }
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
    if (--v.pending_uses == 0 && v.parameter && !v.parameter->observers().empty())
      tell_final(*v.parameter);
  }

  void drop_output_gradients(FunctionNode& node) {
    for (VariableNode* v : node.outputs()) {
      if (v == nullptr || v == kept_) continue;
      v->grad = Array();
      v->grad_variable.reset();
    }
  }

  // Gives the variables what the vertices have, also when the pass fails: vertices would hold
  // themselves through the recorded pass.
  struct GradVariables {
    explicit GradVariables(BackwardPass& p) : pass(p) {
      if (pass.kept_ && pass.options_.create_graph) pass.seen_.emplace_back(pass.kept_);
    }
    ~GradVariables() {
      for (const IntrusivePtr<VariableNode>& v : pass.seen_) {
        if (v->body && v->grad_variable) v->body->grad_variable = v->grad_variable;
        v->grad_variable.reset();
      }
    }
    BackwardPass& pass;
  };

  // Observers -----------------------------------------------------------------------------------
  // Each call may remove and destroy observers.
  using ObserverPtr = IntrusivePtr<detail::ObserverLink>;

  bool knows(const ObserverPtr& o) const {
    return std::find(observers_.begin(), observers_.end(), o) != observers_.end();
  }

  void tell(void (BackwardObserver::*what)()) {
    for (const ObserverPtr& o : observers_) {
      if (o->observer) (o->observer->*what)();
    }
  }

  void tell_final(ParameterState& parameter) {
    if (parameter.observers().size() == 1) return tell_final(*parameter.observers()[0], parameter);
    const IntrusivePtr<ParameterState> keep(&parameter);
    const ParameterState::Observers observers = parameter.observers();
    for (const ObserverPtr& o : observers) tell_final(*o, parameter);
  }

  void tell_final(detail::ObserverLink& link, ParameterState& parameter) {
    const auto is_link = [&](const ObserverPtr& o) { return o.get() == &link; };
    if (link.observer && std::any_of(observers_.begin(), observers_.end(), is_link))
      link.observer->gradient_is_final(parameter);
  }

  static uint64_t next_visit() {
    static std::atomic<uint64_t> passes{0};
    return passes.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  std::span<const Start> starts_;
  VariableNode* kept_ = nullptr;
  BackwardOptions options_;
  uint64_t visit_ = next_visit();
  std::vector<FunctionNode*> nodes_;              // kept alive by the starts
  std::vector<ObserverPtr> observers_;            // who was told of the beginning
  std::vector<IntrusivePtr<VariableNode>> seen_;  // all, with create_graph
};

namespace {

// "output 2" of a list, or the variable whose backward() was called.
std::string shown(int index) {
  return index < 0 ? std::string("this variable") : message("output ", index);
}

void check_recorded(const Variable& v, int index) {
  CATENA_CHECK(GradientError, !v.is_volatile(), "backward: ", shown(index),
               " is volatile: its function calls were not recorded; make the inputs with "
               "Volatile::off where gradients are wanted");
  CATENA_CHECK(GradientError, v.creator() || v.requires_grad(),
               "backward: nothing was recorded for ", shown(index),
               ": it was computed under NoBackprop, from constants alone (an array given as a "
               "variable is one; Variable(array) wants a gradient), or by a function without a "
               "gradient");
}

Array ones_for_one_element(const Variable& v, int index) {
  CATENA_CHECK(GradientError, v.size() == 1, "backward: ", shown(index), ", of shape ", v.shape(),
               ", needs a gradient to start from; ",
               index < 0 ? "call set_grad first" : "give one for it",
               ", or reduce it to one element");
  return ones_like(v.data());
}

void check_gradient(const Variable& v, const Array& gradient, size_t index) {
  CATENA_CHECK(DtypeError, gradient.dtype() == v.dtype(), "backward: gradient ", index, " is ",
               gradient.dtype(), ", its output is ", v.dtype());
  CATENA_CHECK(DeviceError, gradient.device() == v.device(), "backward: gradient ", index,
               " is on ", gradient.device(), ", its output is on ", v.device());
  CATENA_CHECK(ShapeError, gradient.shape() == v.shape(), "backward: gradient ", index,
               " has shape ", gradient.shape(), ", its output has ", v.shape());
}

}  // namespace

void Variable::backward(const BackwardOptions& options) const {
  known("Variable::backward");
  check_recorded(*this, -1);
  if (!creator()) return;
  const ProfilerRange range("Variable::backward");
  VariableNode& start = *node();
  if (!start.grad.defined()) start.grad = ones_for_one_element(*this, -1);
  start.grad_is_own = false;  // functions may hand it on
  if (options.create_graph) {
    const Variable known = grad_variable();
    start.grad_variable =
        IntrusivePtr<VariableBody>((known.defined() ? known : constant(start.grad)).body());
  }
  BackwardPass(start, options).run();
}

void backward(const Variables& outputs, const Arrays& gradients, const BackwardOptions& options) {
  CATENA_CHECK(ValueError, !outputs.empty(), "backward: no outputs to start from were given");
  CATENA_CHECK(ValueError, gradients.empty() || gradients.size() == outputs.size(),
               "backward: ", outputs.size(), " outputs came with ", gradients.size(),
               " gradients; give one for each (a null array means one), or none at all");
  const ProfilerRange range("backward");
  std::vector<BackwardPass::Start> starts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Variable& output = outputs[i];
    CATENA_CHECK(ValueError, output.defined(), "backward: output ", i, " is undefined");
    check_recorded(output, int(i));
    const bool given = !gradients.empty() && gradients[i].defined();
    if (given) check_gradient(output, gradients[i], i);
    const Array gradient = given ? gradients[i] : ones_for_one_element(output, int(i));
    starts.push_back({output.node(), Variable::constant(gradient)});
  }
  BackwardPass(starts, options).run();
}

}  // namespace catena
