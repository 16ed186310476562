// Scopes of hooks, and the hook that finds numbers that are not finite.
#include "catena/autograd/function_hook.h"

#include "autograd/copied_parameter.h"
#include "autograd/hooked_thread.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/parameter.h"
#include "catena/autograd/parameter_state.h"

namespace catena {

std::atomic<int> detail::call_watchers{0};

FunctionHookScope*& HookedThread::innermost() {
  thread_local FunctionHookScope* scope = nullptr;
  return scope;
}

void FunctionHook::forward_begins(const FunctionCall&) {}
void FunctionHook::forward_ends(const FunctionCall&) {}
void FunctionHook::backward_begins(const FunctionNode&) {}
void FunctionHook::backward_ends(const FunctionNode&) {}

FunctionHookScope::FunctionHookScope(FunctionHook& hook)
    : hook_(hook), outer_(HookedThread::innermost()) {
  HookedThread::innermost() = this;
  detail::call_watchers.fetch_add(1, std::memory_order_relaxed);
}

FunctionHookScope::~FunctionHookScope() {
  detail::call_watchers.fetch_sub(1, std::memory_order_relaxed);
  HookedThread::innermost() = outer_;
}

void detail::tell_backward_begins(const FunctionNode& node) {
  HookedThread::tell(&FunctionHook::backward_begins, node);
}
void detail::tell_backward_ends(const FunctionNode& node) {
  HookedThread::tell_in_reverse(&FunctionHook::backward_ends, node);
}

// NanFinder ---------------------------------------------------------------------------------------

namespace {

bool is_finite(const Array& a) {
  if (!a.defined() || !is_float(a.dtype()) || a.size() == 0) return true;
  return all(isfinite(a)).item<bool>();
}

// ", parameter 'l1/W'" of a parameter.
std::string text_of_parameter(const VariableNode* node) {
  if (node == nullptr || node->parameter == nullptr) return {};
  return ", parameter '" + path_of(*node->parameter) + "'";
}

// "; its operand 1, parameter 'l1/W', (2, 3) float32, is not finite", or that all are.
std::string text_of_operands(const FunctionCall& call) {
  std::string text;
  for (size_t i = 0; i < call.size(); ++i) {
    const Array& x = call[i].data();
    if (!is_finite(x))
      text += message("; its operand ", i, text_of_parameter(call[i].node()), ", ", x.shape(), " ",
                      x.dtype(), ", is not finite");
  }
  return text.empty() ? "; all its operands are finite" : text;
}

// Whose gradient a node has made: where none is with a parameter's 16-bit copy, the parameter.
const VariableNode& reached(const VariableNode& v) {
  const VariableNode* source = v.grad.defined() ? nullptr : detail::copied_parameter(v);
  return source ? *source : v;
}

const Array& gradient_of(const VariableNode& v) {
  return v.parameter && v.parameter->has_gradient() ? v.parameter->gradient_memory() : v.grad;
}

}  // namespace

void NanFinder::forward_ends(const FunctionCall& call) {
  for (size_t i = 0; i < call.outputs().size(); ++i) {
    const Array& y = call.outputs()[i];
    CATENA_CHECK(ValueError, is_finite(y), call.label(), ": output ", i, ", ", y.shape(), " ",
                 y.dtype(), ", has NaN or infinite elements", text_of_operands(call));
  }
}

void NanFinder::backward_ends(const FunctionNode& node) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const VariableNode& v = reached(*node.inputs()[i]);
    CATENA_CHECK(ValueError, is_finite(gradient_of(v)), node.label(), ": the gradient of input ", i,
                 text_of_parameter(&v), ", ", v.shape, " ", v.dtype,
                 ", has NaN or infinite elements after its backward");
  }
}

}  // namespace catena
