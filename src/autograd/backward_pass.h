// One sweep over the recorded graph. Passes nest: a function may run one in its backward.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/autograd/backward.h"
#include "catena/autograd/backward_observer.h"
#include "catena/autograd/function_node.h"
#include "catena/autograd/pass_start.h"

namespace catena {

// The rest of passes in parts.
struct DeferredWeights::Rest {
  template <class Gradient>
  using Gradients =
      boost::container::small_vector<std::pair<IntrusivePtr<VariableNode>, Gradient>, 1>;
  // A node whose backward is still to be called for weights, and the gradients of its outputs.
  struct Entry {
    IntrusivePtr<FunctionNode> node;
    Gradients<Array> gradients;
  };
  // The gradient of a weight that is there already, made by a node of this number.
  struct Ready {
    uint64_t sequence;
    IntrusivePtr<VariableNode> weight;
    Variable gradient;
  };
  // What the passes began with that have left something.
  void note(const IntrusivePtr<MeanRecord>& begun_with, bool has_means);

  std::vector<Entry> entries;
  std::vector<Ready> ready;
  IntrusivePtr<MeanRecord> mean;  // all of them
  bool knows_mean = false;
  bool is_mixed = false;  // several means, or a sum of them
};

// Whether a gradient has reached one of its outputs.
inline bool has_gradient(const FunctionNode& node) {
  return std::any_of(node.outputs().begin(), node.outputs().end(),
                     [](VariableNode* v) { return v != nullptr && v->grad.defined(); });
}

namespace detail {
// A pass over parameters of an optimizer has reached these as well, which no model lists: see
// require_no_lost_gradients.
void note_lost_gradients(const std::vector<IntrusivePtr<ParameterState>>& unlisted,
                         ParameterState* trained);
}  // namespace detail

// Collects the nodes behind the starts, then visits them by descending creation number, so that
// equal programs run equal sequences of kernels. Whoever makes it keeps the starts alive.
//
// Vertices have room for the state of one pass: its number, pending uses, the gradient in flight. A
// pass that runs inside another one puts the state of vertices that both see aside, and the outer
// pass takes it back as soon as it goes on (resume). Parameters are one for all passes of a thread:
// their gradients add up, and observers hear of the outermost pass only.
class BackwardPass {
 public:
  // A vertex and the gradient that it starts with.
  struct Start {
    VariableNode* vertex;
    Variable gradient;
  };

  BackwardPass(std::span<const Start> starts, const BackwardOptions& options);
  // From one result that has its gradient already, and keeps it.
  BackwardPass(VariableNode& start, const BackwardOptions& options);
  // What earlier passes have left.
  explicit BackwardPass(DeferredWeights::Rest& rest);
  ~BackwardPass();
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;

  // `frame` is that of the function that somebody called to begin the pass.
  void run(const void* frame);
  // Of the running pass of this thread; null if there is none.
  static const void* innermost_frame();

  // Takes back what inner passes have put aside.
  void resume() {
    if (!aside_.empty()) [[unlikely]]
      restore();
  }
  // Whether the outermost pass that runs on this thread drops what flows to parameters.
  static bool outermost_drops();
  // Whether its loss is that of a part of a batch (PassStart).
  static bool outermost_is_of_a_part();
  // Where the gradients of weights are noted; null in an ordinary pass.
  bool defers() const { return later_ != nullptr; }
  // Whether what flows to a parameter is dropped, as this pass or one around it was asked to.
  bool drops() const { return drops_; }
  // Whether the gradients of results stay with their vertices.
  bool retains() const { return options_.retain_grad; }
  // Adds to the gradient of a vertex, unless it is a parameter and that is dropped.
  void give(VariableNode& v, const Variable& gradient);
  // Notes the gradient of a weight that a node which does not split has made, or that the pass
  // begins with (null).
  void keep_ready(VariableNode& weight, const Variable& gradient, const FunctionNode* node);

 private:
  friend class PassStart;
  using Part = BackwardContext::Part;
  using ObserverPtr = IntrusivePtr<detail::ObserverLink>;
  using VertexPtr = IntrusivePtr<VariableNode>;

  // A vertex's state in this pass while an inner one has it.
  struct Aside {
    VertexPtr vertex;
    uint64_t visit;
    int pending_uses;
    bool grad_is_own;
    Array grad;
    IntrusivePtr<VariableBody> grad_variable;
  };
  struct GradVariables;

  void collect();
  void collect_rest();
  void see_parameter(ParameterState& parameter);
  void see(VariableNode& v);
  void add(FunctionNode* node);
  void start_parameters();
  void step(FunctionNode& node);
  void step_in_parts(FunctionNode& node);
  void step_rest();
  void finish(DeferredWeights::Rest::Entry& entry);
  void mark_weights();
  void call(FunctionNode& node, Part part);
  void done_with(VariableNode& v);
  void drop_output_gradients(FunctionNode& node);

  // What observers change of the start (pass_start.h)
  VariableNode* single_start() const;  // null: several, or a parameter
  void scale_starts(const Array& factor);
  void scale_start(VariableNode& v, const Array& factor);
  void restore_start();
  void note_start();
  void scale_rest(const Array& factor);
  void scale_vertex(VariableNode& v, const Array& factor);
  void scale_outputs(FunctionNode& node);

  // Passes within passes
  void take_over(VariableNode& v);
  void put_aside(VariableNode& v);
  void join(VariableNode& parameter);
  void restore();

  // Observers: each call may remove and destroy observers, and run passes.
  bool tells() const { return outer_ == nullptr && !defers(); }
  bool knows(const ObserverPtr& o) const;
  void see_observers(const ParameterState& parameter);
  template <class... Arguments>
  void tell(void (BackwardObserver::*what)(Arguments...),
            std::type_identity_t<Arguments>... arguments);
  void tell_final(ParameterState& parameter);
  void tell_final(detail::ObserverLink& link, ParameterState& parameter);

  std::span<const Start> starts_;
  VariableNode* kept_ = nullptr;
  BackwardOptions options_;
  DeferredWeights::Rest* rest_ = nullptr;   // what this pass does, if it does what others left
  DeferredWeights::Rest* later_ = nullptr;  // what it leaves, if it leaves anything
  const void* frame_ = nullptr;
  BackwardPass* outer_;
  BackwardPass* outermost_;
  bool drops_;
  uint64_t visit_;
  bool is_of_a_part_ = false;
  bool some_use_more_ = false;                          // some nodes have also_uses
  std::vector<FunctionNode*> nodes_;                    // kept alive by the starts
  std::vector<ObserverPtr> observers_;                  // who was notified of the beginning
  std::vector<VertexPtr> seen_;                         // all, with create_graph
  std::vector<VertexPtr> late_;                         // parameters that inner passes alone reach
  ParameterState* trained_ = nullptr;                   // a parameter of an optimizer
  std::vector<IntrusivePtr<ParameterState>> unlisted_;  // parameters that no model lists
  std::vector<Aside> aside_;
  std::vector<std::pair<VariableNode*, Array>> factors_;  // of what flows into means
  bool is_scaled_ = false;  // kept_ is to get back what it began with, one if that is undefined
  Array given_;
  IntrusivePtr<VariableBody> given_variable_;
};

}  // namespace catena
