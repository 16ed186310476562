// The sweep: collecting nodes, visiting them, and telling observers.
#include "autograd/backward_pass.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "autograd/contribute.h"
#include "catena/array/creation.h"
#include "catena/autograd/function_hook.h"
#include "catena/autograd/parameter.h"
#include "catena/core/call_scope.h"

namespace catena {
namespace {

thread_local BackwardPass* t_running = nullptr;

uint64_t next_visit() {
  static std::atomic<uint64_t> passes{0};
  return passes.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The running pass of the thread, also when a pass fails.
struct Running {
  explicit Running(BackwardPass* pass) : before(std::exchange(t_running, pass)) {}
  ~Running() { t_running = before; }
  BackwardPass* before;
};

}  // namespace

BackwardPass::BackwardPass(std::span<const Start> starts, const BackwardOptions& options)
    : starts_(starts),
      options_(options),
      outer_(t_running),
      outermost_(outer_ ? outer_->outermost_ : this),
      drops_(options.drop_parameter_gradients || (outer_ && outer_->drops_)),
      visit_(next_visit()) {
  if (options.weights_later != nullptr) {
    CATENA_CHECK(
        ValueError, !options.create_graph,
        "backward: weights_later and create_graph cannot be combined; record a whole pass");
    auto& rest = options.weights_later->rest_;
    if (!rest) rest = std::make_unique<DeferredWeights::Rest>();
    later_ = rest.get();
  } else if (outer_ != nullptr) {
    later_ = outer_->later_;
  }
  CATENA_CHECK(ValueError, !drops() || !defers(),
               "backward: weights_later and drop_parameter_gradients cannot be combined; the "
               "gradients of weights that are noted would not be dropped");
}

BackwardPass::BackwardPass(VariableNode& start, const BackwardOptions& options)
    : BackwardPass(std::span<const Start>(), options) {
  kept_ = &start;
}

BackwardPass::BackwardPass(DeferredWeights::Rest& rest)
    : BackwardPass(std::span<const Start>(), {}) {
  rest_ = &rest;
  later_ = nullptr;
}

BackwardPass::~BackwardPass() {
  restore_start();
  resume();
}

// Gives the variables what the vertices have, also when the pass fails: vertices would hold
// themselves through the recorded pass.
struct BackwardPass::GradVariables {
  explicit GradVariables(BackwardPass& p) : pass(p) {
    if (pass.kept_ && pass.options_.create_graph) pass.seen_.emplace_back(pass.kept_);
  }
  ~GradVariables() {
    for (const VertexPtr& v : pass.seen_) {
      if (v->body && v->grad_variable) v->body->grad_variable = v->grad_variable;
      v->grad_variable.reset();
    }
  }
  BackwardPass& pass;
};

const void* BackwardPass::innermost_frame() { return t_running ? t_running->frame_ : nullptr; }

bool BackwardPass::outermost_drops() { return t_running && t_running->outermost_->drops_; }

void BackwardPass::run(const void* frame) {
  frame_ = frame;
  std::optional<NoBackprop> off;
  std::optional<ForceBackprop> on;
  if (options_.create_graph)
    on.emplace();
  else
    off.emplace();
  const Running running(this);
  const GradVariables hand_over(*this);
  rest_ ? collect_rest() : collect();
  if (defers()) note_start();
  if (tells()) {
    tell(&BackwardObserver::backward_begins);
    PassStart start(*this);
    tell(&BackwardObserver::backward_starts, start);
  }
  if (kept_ && !kept_->grad.defined())
    kept_->grad = ones(kept_->shape, {kept_->dtype, kept_->device});
  start_parameters();
  for (FunctionNode* node : nodes_) defers() ? step_in_parts(*node) : step(*node);
  if (rest_) step_rest();
  for (size_t i = 0; i < late_.size(); ++i) done_with(*late_[i]);
  if (trained_ && outer_ == nullptr && !drops()) detail::note_lost_gradients(unlisted_, trained_);
  if (tells()) tell(&BackwardObserver::backward_ends);
}

bool BackwardPass::outermost_is_of_a_part() {
  return t_running && t_running->outermost_->is_of_a_part_;
}

// Collecting --------------------------------------------------------------------------------------

// The starts with their gradients, and all nodes behind them, iteratively; counts the uses of
// parameters and forgets old gradients.
void BackwardPass::collect() {
  if (kept_) {
    // Its gradient is this pass's own, whatever an outer one had there.
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
    for (const auto& parameter : nodes_[i]->also_uses()) {
      see(*parameter);
      ++parameter->pending_uses;
      some_use_more_ = true;
    }
  }
  std::sort(nodes_.begin(), nodes_.end(),
            [](FunctionNode* a, FunctionNode* b) { return a->sequence() > b->sequence(); });
  if (defers()) mark_weights();
}

void BackwardPass::see(VariableNode& v) {
  if (v.visit == visit_) return;
  if (outer_) [[unlikely]]
    take_over(v);
  v.visit = visit_;
  v.pending_uses = 0;
  v.forget_grad_variable();
  if (options_.create_graph) seen_.emplace_back(&v);
  if (v.parameter) {
    see_parameter(*v.parameter);
  } else {
    v.grad = Array();
    v.grad_is_own = false;
  }
}

void BackwardPass::see_parameter(ParameterState& parameter) {
  if (tells()) see_observers(parameter);
  if (!parameter.listed.load(std::memory_order_relaxed)) [[unlikely]]
    unlisted_.emplace_back(&parameter);
  if (parameter.name.starts_with('/')) trained_ = &parameter;
}

void BackwardPass::add(FunctionNode* node) {
  if (node->visit_ == visit_) return;
  node->visit_ = visit_;
  CATENA_CHECK(GradientError, !options_.create_graph || node->is_differentiable(), node->label(),
               ": create_graph asks to differentiate its backward, which is written on arrays; "
               "compose it of functions of Variables, or write a FunctionNode "
               "(function_node.h)");
  nodes_.push_back(node);
}

// Parameters among the starts: after backward_begins, which may give their gradients new places.
void BackwardPass::start_parameters() {
  for (const Start& start : starts_) {
    if (!start.vertex->parameter) continue;
    if (defers()) {
      keep_ready(*start.vertex, start.gradient, nullptr);
      continue;
    }
    give(*start.vertex, start.gradient);
    done_with(*start.vertex);
  }
}

void BackwardPass::give(VariableNode& v, const Variable& gradient) {
  if (!v.parameter || !drops()) contribute(v, gradient, options_.create_graph);
}

// Visiting ----------------------------------------------------------------------------------------

void BackwardPass::step(FunctionNode& node) {
  const bool reached = has_gradient(node);
  if (!factors_.empty()) [[unlikely]]
    scale_outputs(node);
  if (reached) call(node, Part::kAll);
  for (const auto& input : node.inputs()) {
    if (input->requires_grad) done_with(*input);
  }
  if (some_use_more_) [[unlikely]] {
    for (const auto& parameter : node.also_uses()) done_with(*parameter);
  }
  if (!options_.retain_grad && reached) drop_output_gradients(node);
}

void BackwardPass::call(FunctionNode& node, Part part) {
  const bool profiled = detail::memory_profiles.load(std::memory_order_relaxed) != 0;
  const std::string name = profiled ? "backward of " + node.label() : std::string();
  const CallScope scope(name.c_str());
  const bool watched = detail::call_watchers.load(std::memory_order_relaxed) != 0;
  if (watched) [[unlikely]] {
    detail::tell_backward_begins(node);
    node.bring_parameters();
  }
  BackwardContext context(node, *this, part, options_.create_graph);
  node.backward(context);
  resume();
  if (watched) [[unlikely]]
    detail::tell_backward_ends(node);
}

void BackwardPass::done_with(VariableNode& v) {
  if (--v.pending_uses == 0 && v.parameter && outer_ == nullptr &&
      !v.parameter->observers().empty())
    tell_final(*v.parameter);
}

void BackwardPass::drop_output_gradients(FunctionNode& node) {
  for (VariableNode* v : node.outputs()) {
    if (v == nullptr || v == kept_) continue;
    v->grad = Array();
    v->grad_variable.reset();
  }
}

// Passes within passes ----------------------------------------------------------------------------

// Before this pass uses a vertex that others around it may use.
void BackwardPass::take_over(VariableNode& v) {
  for (BackwardPass* pass = outer_; pass; pass = pass->outer_) {
    if (v.visit == pass->visit_) return pass->put_aside(v);
  }
  if (v.parameter && !v.parameter->observers().empty() && outermost_->tells()) outermost_->join(v);
}

void BackwardPass::put_aside(VariableNode& v) {
  CATENA_CHECK(GradientError,
               !v.parameter || !tells() || v.pending_uses > 0 || v.parameter->observers().empty(),
               "backward: a pass inside another one adds to the gradient of parameter '",
               v.parameter ? path_of(*v.parameter) : std::string(),
               "', which the outer pass has reported as final; let the function that runs the "
               "inner pass name it in uses() (Function), also_uses() (FunctionNode), or use "
               "F::recompute");
  aside_.push_back({VertexPtr(&v), v.visit, v.pending_uses, v.grad_is_own, std::move(v.grad),
                    std::move(v.grad_variable)});
}

// A parameter that this pass, the outermost, did not know of counts as used until its end.
void BackwardPass::join(VariableNode& parameter) {
  late_.emplace_back(&parameter);
  parameter.visit = visit_;
  parameter.pending_uses = 1;
  put_aside(parameter);
  const size_t told = observers_.size();
  see_observers(*parameter.parameter);
  for (size_t i = told; i < observers_.size(); ++i) {
    const ObserverPtr o = observers_[i];
    if (o->observer) o->observer->backward_begins();
  }
}

void BackwardPass::restore() {
  while (!aside_.empty()) {
    Aside a = std::move(aside_.back());
    aside_.pop_back();
    VariableNode& v = *a.vertex;
    v.visit = a.visit;
    v.pending_uses = a.pending_uses;
    if (v.parameter) continue;
    v.grad = std::move(a.grad);
    v.grad_is_own = a.grad_is_own;
    v.grad_variable = std::move(a.grad_variable);
  }
}

// Observers ---------------------------------------------------------------------------------------

bool BackwardPass::knows(const ObserverPtr& o) const {
  return std::find(observers_.begin(), observers_.end(), o) != observers_.end();
}

void BackwardPass::see_observers(const ParameterState& parameter) {
  for (const ObserverPtr& o : parameter.observers()) {
    if (o->observer && !knows(o)) observers_.push_back(o);
  }
}

template <class... Arguments>
void BackwardPass::tell(void (BackwardObserver::*what)(Arguments...),
                        std::type_identity_t<Arguments>... arguments) {
  for (size_t i = 0; i < observers_.size(); ++i) {
    const ObserverPtr o = observers_[i];
    if (o->observer) (o->observer->*what)(arguments...);
  }
  resume();
}

void BackwardPass::tell_final(ParameterState& parameter) {
  const IntrusivePtr<ParameterState> keep(&parameter);
  if (parameter.observers().size() == 1) {
    tell_final(*ObserverPtr(parameter.observers()[0]), parameter);
  } else {
    const ParameterState::Observers observers = parameter.observers();
    for (const ObserverPtr& o : observers) tell_final(*o, parameter);
  }
  resume();
}

void BackwardPass::tell_final(detail::ObserverLink& link, ParameterState& parameter) {
  const auto is_link = [&](const ObserverPtr& o) { return o.get() == &link; };
  if (link.observer && std::any_of(observers_.begin(), observers_.end(), is_link))
    link.observer->gradient_is_final(parameter);
}

}  // namespace catena
