// Variables: handles, their vertices in the graph and their gradients.
#include "catena/autograd/variable.h"

#include <ostream>
#include <vector>

#include "autograd/contribute.h"
#include "autograd/free_list.h"
#include "catena/autograd/function_hook.h"
#include "catena/autograd/function_node.h"
#include "catena/autograd/mean.h"
#include "catena/autograd/parameter_state.h"
#include "catena/core/entry_scope.h"

namespace catena {

VariableBody* VariableBody::create() { return FreeList<VariableBody>::create(); }
void VariableBody::destroy(VariableBody* body) {
  if (body->node && body->node->body == body) body->node->body = nullptr;
  FreeList<VariableBody>::destroy(body);
}

uint64_t ParameterData::writes() const { return moved_writes + write_count(array); }

void ParameterData::replace(const Array& other, bool same_values) {
  const uint64_t before = array.defined() ? writes() : 0;
  array = other;
  ++moves;
  moved_writes += before + (same_values ? 0 : 1) - writes();
  set_absent(false);
}

void ParameterData::set_absent(bool absent) {
  if (absent == is_absent) return;
  is_absent = absent;
  detail::call_watchers.fetch_add(absent ? 1 : -1, std::memory_order_relaxed);
}

void ParameterData::destroy(ParameterData* data) {
  data->set_absent(false);
  delete data;
}

void VariableNode::own_grad() {
  if (grad_is_own || !grad.defined()) return;
  const bool differentiable = grad_variable || (body && body->grad_variable);
  if (!grad.is_writable() || (!differentiable && !is_sole_owner(grad))) grad = grad.copy();
  grad_is_own = true;
}

void VariableNode::forget_grad_variable() {
  grad_variable.reset();
  if (body) body->grad_variable.reset();
}

void VariableNode::destroy(VariableNode* node) {
  if (node->creator) {
    // The function must not find a dangling output.
    auto& outputs = node->creator->outputs_;
    if (static_cast<size_t>(node->output_index) < outputs.size())
      outputs[size_t(node->output_index)] = nullptr;
  }
  FreeList<VariableNode>::destroy(node);
}

namespace {

void make_node(VariableBody& body, bool requires_grad) {
  IntrusivePtr<VariableNode> node(FreeList<VariableNode>::create());
  node->body = &body;
  node->requires_grad = requires_grad;
  node->dtype = body.data.dtype();
  node->device = body.data.device();
  node->shape = body.data.shape();
  body.node = std::move(node);
}

void check_gradient(const Array& data, const Array& grad) {
  CATENA_CHECK(DtypeError, grad.dtype() == data.dtype(), "the gradient has dtype ", grad.dtype(),
               ", expected that of the data, ", data.dtype());
  CATENA_CHECK(DeviceError, grad.device() == data.device(), "the gradient is on ", grad.device(),
               ", expected the device of the data, ", data.device());
  CATENA_CHECK(ShapeError, grad.shape() == data.shape(), "the gradient has shape ", grad.shape(),
               ", expected that of the data, ", data.shape());
}

}  // namespace

Variable::Variable(const Array& data, Volatile is_volatile) : body_(VariableBody::create()) {
  CATENA_CHECK(ValueError, data.defined(), "Variable: expected an array, got an undefined one");
  body_->data = data;
  body_->is_volatile = is_volatile == Volatile::on;
  if (!body_->is_volatile) make_node(*body_, is_float(data.dtype()));
}

void Variable::fail_undefined(const char* who) {
  fail<ValueError>(who,
                   ": this variable is undefined; was it never assigned, moved from, or is it ",
                   "the result of a call that found none (grad_variable() needs backward with "
                   "create_graph)?");
}

Variable Variable::constant(const Array& data) {
  CATENA_CHECK(ValueError, data.defined(),
               "Variable::constant: expected an array, got an undefined one");
  Variable v;
  v.body_ = IntrusivePtr<VariableBody>(VariableBody::create());
  v.body_->data = data;
  return v;
}

void Variable::set_data(const Array& data) const {
  VariableBody& body = known("Variable::set_data");
  CATENA_CHECK(ValueError, data.defined(),
               "Variable::set_data: expected an array, got an undefined one");
  body.data = data;
  if (body.node) {
    if (body.node->parameter) body.node->parameter->data->replace(data, false);
    body.node->dtype = data.dtype();
    body.node->device = data.device();
    body.node->shape = data.shape();
  }
}

void Variable::set_volatile(Volatile value) const {
  VariableBody& body = known("Variable::set_volatile");
  const bool was = body.is_volatile;
  body.is_volatile = value == Volatile::on;
  if (was && !body.is_volatile && !body.node) make_node(body, is_float(body.data.dtype()));
}

Array Variable::grad() const {
  const VariableBody& body = known("Variable::grad");
  if (!body.node) return {};
  if (ParameterState* p = body.node->parameter) return p->has_gradient() ? p->settle() : Array();
  body.node->own_grad();
  return body.node->grad;
}

void Variable::set_grad(const Array& grad) const {
  const VariableBody& body = known("Variable::set_grad");
  const EntryScope call("set_grad");
  if (body.node && body.node->parameter) {
    CATENA_CHECK(GradientError, grad.defined(),
                 "set_grad: the gradient of a parameter cannot be cleared; use zero_grad");
    check_gradient(data(), grad);
    return body.node->parameter->set_gradient(grad);
  }
  if (grad.defined()) check_gradient(data(), grad);
  VariableNode* n = node();
  n->grad = grad;
  n->grad_is_own = true;
  n->forget_grad_variable();
}

Variable Variable::grad_variable() const {
  const VariableBody& body = known("Variable::grad_variable");
  if (!body.node) return {};
  if (body.node->grad_variable) return Variable(body.node->grad_variable.get());  // a pass runs
  return body.node->body ? Variable(body.node->body->grad_variable.get()) : Variable();
}

VariableNode* Variable::node() const {
  VariableBody& body = known("Variable::node");
  if (!body.node) make_node(body, false);
  return body.node.get();
}

std::string Variable::label() const {
  known("Variable::label");
  return ndim() == 0 ? std::string(catena::name(dtype())) : message(shape(), ", ", dtype());
}

void Variable::unchain_backward() const {
  known("Variable::unchain_backward");
  if (!creator()) return;
  std::vector<IntrusivePtr<FunctionNode>> pending{IntrusivePtr<FunctionNode>(creator())};
  while (!pending.empty()) {
    IntrusivePtr<FunctionNode> f = std::move(pending.back());
    pending.pop_back();
    for (const auto& input : f->inputs()) {
      if (input->creator) pending.push_back(input->creator);
    }
    f->unchain();  // a node met twice has no inputs the second time
  }
}

std::ostream& operator<<(std::ostream& os, const Variable& variable) {
  if (!variable.defined()) return os << "Variable()";
  std::string text = variable.data().repr();
  if (text.starts_with("array(")) text.erase(0, 6);
  return os << "Variable(" << text;
}

}  // namespace catena
