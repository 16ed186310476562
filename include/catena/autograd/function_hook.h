// FunctionHook: called for each function and layer call of a thread, forward and backward. For
// timers, traces, checks of values, and anything else around all functions.
#pragma once

#include <atomic>

#include "catena/autograd/function_node.h"

namespace catena {

class FunctionCall;

// Derive, override what is wanted, and open a scope:
//
//   struct Count : FunctionHook {
//     std::map<std::string, int> calls;
//     void forward_begins(const FunctionCall& call) override { ++calls[call.name()]; }
//   };
//   Count count;
//   {
//     const FunctionHookScope scope(count);
//     model(x).backward();
//   }
//
// Functions that call others begin before and end after them: the calls of a hook nest. Kernels of
// GPUs run asynchronously, so that a timer synchronizes its device. An exception from a hook leaves
// the call that it is about; only forward_ends of a call that failed must not throw.
class FunctionHook {
 public:
  virtual ~FunctionHook() = default;
  // The operands are checked to be defined, and cast where an AutocastScope asks for it.
  virtual void forward_begins(const FunctionCall& call);
  // The outputs are there (FunctionCall::outputs); none if the call has failed.
  virtual void forward_ends(const FunctionCall& call);
  // A pass is about to call backward of the node, and has called it. The gradients of its outputs
  // and inputs are with the vertices (VariableNode::grad) or parameters, unless create_graph or a
  // part of a pass has them elsewhere.
  virtual void backward_begins(const FunctionNode& node);
  virtual void backward_ends(const FunctionNode& node);
};

// While it lives, the hook is called for the functions of the thread that made it. Scopes nest:
// hooks of outer ones begin first and end last. Without one, a call pays a load.
class FunctionHookScope {
 public:
  explicit FunctionHookScope(FunctionHook& hook);
  ~FunctionHookScope();
  FunctionHookScope(const FunctionHookScope&) = delete;
  FunctionHookScope& operator=(const FunctionHookScope&) = delete;

 private:
  friend struct HookedThread;
  FunctionHook& hook_;
  FunctionHookScope* outer_;
};

// Finds the function that makes the first number that is not finite: ValueError that names it, the
// output or gradient, and the operands, parameters by their paths, right after the call. Reads
// every result on its device and waits for it, so that training is several times slower.
//
//   NanFinder finder;
//   const FunctionHookScope scope(finder);
class NanFinder : public FunctionHook {
 public:
  void forward_ends(const FunctionCall& call) override;
  void backward_ends(const FunctionNode& node) override;
};

namespace detail {
// Hooks, autocast scopes and watched parameters of all threads.
extern std::atomic<int> call_watchers;
// Around a backward: hooks of the thread, outermost first, and in the reverse order.
void tell_backward_begins(const FunctionNode& node);
void tell_backward_ends(const FunctionNode& node);
}  // namespace detail

}  // namespace catena
