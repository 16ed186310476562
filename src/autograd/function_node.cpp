// Recording function applications, and what their backward sees and writes.
#include "catena/autograd/function_node.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "autograd/backward_pass.h"
#include "autograd/contribute.h"
#include "autograd/copied_parameter.h"
#include "autograd/free_list.h"
#include "autograd/parameter_uses.h"
#include "catena/array/math.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/mean.h"
#include "catena/autograd/parameter_state.h"

namespace catena {
namespace {

std::atomic<uint64_t> g_sequence{0};

// Nodes whose last reference went while another one was being destroyed on this thread: released
// one after the other, so that the depth of the graph does not become depth of the stack.
thread_local std::vector<FunctionNode*>* t_dying = nullptr;

const char* kind(bool is_output) { return is_output ? "output" : "input"; }

}  // namespace

void FunctionNode::destroy(FunctionNode* node) {
  if (t_dying != nullptr) {
    t_dying->push_back(node);
    return;
  }
  std::vector<FunctionNode*> dying;
  t_dying = &dying;
  delete node;
  while (!dying.empty()) {
    FunctionNode* next = dying.back();
    dying.pop_back();
    delete next;
  }
  t_dying = nullptr;
}

void FunctionNode::save_input(int i, const Variable& input) {
  const VariableNode* vertex = input.body()->node.get();
  if (vertex != nullptr && vertex->parameter != nullptr) {
    const IntrusivePtr<ParameterData>& data = vertex->parameter->data;
    saved_.push_back({Array(), data, data->writes(), i, false});
  } else {
    saved_.push_back({input.data(), nullptr, write_count(input.data()), i, false});
  }
}

void FunctionNode::save_output(int i, const Array& output) {
  saved_.push_back({output, nullptr, write_count(output), i, true});
}

namespace {

IntrusivePtr<VariableNode> output_node(FunctionNode* creator, int index, const Array& data) {
  IntrusivePtr<VariableNode> node(FreeList<VariableNode>::create());
  node->creator = IntrusivePtr<FunctionNode>(creator);
  node->output_index = index;
  node->dtype = data.dtype();
  node->device = data.device();
  node->shape = data.shape();
  node->requires_grad = is_float(data.dtype());
  return node;
}

Variable output_variable(const Array& data, IntrusivePtr<VariableNode> node) {
  VariableBody* body = VariableBody::create();
  Variable v(body);
  body->data = data;
  node->body = body;
  body->node = std::move(node);
  return v;
}

}  // namespace

void FunctionNode::add_input(const Variable& input) {
  inputs_.emplace_back(input.node());
  if (ParameterState* p = input.node()->parameter) p->used.store(true, std::memory_order_release);
}

Variable FunctionNode::add_output(const Array& output) {
  auto node = output_node(this, static_cast<int>(outputs_.size()), output);
  outputs_.push_back(node.get());
  return output_variable(output, std::move(node));
}

Variable FunctionNode::connect(Inputs inputs, const Array& output) {
  IntrusivePtr<FunctionNode> self(this);  // owns the node even when something below throws
  sequence_ = g_sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const Variable* input : inputs) add_input(*input);
  return add_output(output);
}

Variables FunctionNode::connect(Inputs inputs, const Arrays& outputs) {
  IntrusivePtr<FunctionNode> self(this);
  sequence_ = g_sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const Variable* input : inputs) add_input(*input);
  Variables result;
  result.reserve(outputs.size());
  for (const Array& output : outputs) result.push_back(add_output(output));
  return result;
}

void FunctionNode::unchain() {
  IntrusivePtr<FunctionNode> self(this);
  for (VariableNode* output : outputs_) {
    if (output) output->creator.reset();
  }
  outputs_.clear();
  inputs_.clear();
  saved_.clear();
}

Variable BackwardContext::grad_output(int i) const {
  pass_.resume();
  VariableNode* output = node_.outputs_[size_t(i)];
  if (output == nullptr) return {};
  if (create_graph_ && output->grad_variable) return Variable(output->grad_variable.get());
  return output->grad.defined() ? Variable::constant(output->grad) : Variable();
}

const Array& FunctionNode::unchanged(const Saved& saved) const {
  if (saved.parameter && saved.parameter->is_absent) [[unlikely]]
    bring_back(saved);
  const Array& data = saved.parameter ? saved.parameter->array : saved.data;
  const uint64_t now = saved.parameter ? saved.parameter->writes() : write_count(data);
  if (now == saved.version) [[likely]]
    return data;
  fail<GradientError>(label(), ": backward needs ", kind(saved.is_output), " ", saved.index,
                      " (shape ", data.shape(), ", ", data.dtype(),
                      "), which was overwritten after the forward pass; write into a copy instead");
}

// Of a parameter whose values are not here.
void FunctionNode::bring_back(const Saved& saved) const {
  ParameterState* parameter = inputs_[size_t(saved.index)]->parameter;
  CATENA_CHECK(GradientError, parameter != nullptr, label(), ": backward needs input ", saved.index,
               ", a parameter that is gone and whose values are not in this process");
  if (!parameter->before_use()) parameter->fail_absent("backward of " + label());
}

// All that were saved, whichever backward() asks for: what it leaves out, as for an empty batch,
// must not differ between processes that gather parameters together. Those that are here count as
// used first, so that they stay while others come.
void FunctionNode::bring_parameters() const {
  const auto is_away = [](const Saved& s) { return s.parameter && s.parameter->is_absent; };
  if (std::none_of(saved_.begin(), saved_.end(), is_away)) return;
  begin_use();
  for (const Saved& saved : saved_) {
    if (!saved.parameter || is_away(saved)) continue;
    if (ParameterState* here = inputs_[size_t(saved.index)]->parameter) here->before_use();
  }
  for (const Saved& saved : saved_)
    if (is_away(saved)) bring_back(saved);
}

Variable BackwardContext::input(int i) const {
  for (const auto& s : node_.saved_) {
    if (s.is_output || s.index != i) continue;
    Variable v = Variable::constant(node_.unchanged(s));
    if (create_graph_) v.body()->node = node_.inputs_[size_t(i)];
    return v;
  }
  fail<GradientError>(node_.label(), ": backward asks for input ", i, ", which was not saved");
}

Variable BackwardContext::output(int i) const {
  for (const auto& s : node_.saved_) {
    if (!s.is_output || s.index != i) continue;
    Variable v = Variable::constant(node_.unchanged(s));
    if (create_graph_) {
      VariableNode*& output = node_.outputs_[size_t(i)];
      if (output) {
        v.body()->node = IntrusivePtr<VariableNode>(output);
      } else {  // nobody holds the output any more: a new vertex in its place
        auto fresh = output_node(&node_, i, s.data);
        output = fresh.get();
        v.body()->node = std::move(fresh);
      }
    }
    return v;
  }
  fail<GradientError>(node_.label(), ": backward asks for output ", i, ", which was not saved");
}

namespace {

// The sum of two gradients as a separate recorded operation: the functions layer is above this one.
struct GradientSum : FunctionNode {
  std::string label() const override { return "_ + _"; }
  void backward(BackwardContext& context) override {
    const Variable g = context.grad_output();
    context.set_grad(0, g);
    context.set_grad(1, g);
  }
};

Variable add_recorded(const Variable& a, const Variable& b) {
  FunctionCall call("GradientSum", Autocast::kNone, a, b);
  return call.record(add(a.data(), b.data()), [] { return make_node<GradientSum>(); });
}

}  // namespace

BackwardContext::Destination BackwardContext::destination(int i) {
  if (create_graph_ || !needs(i)) return {};
  pass_.resume();
  VariableNode& v = *node_.inputs_[size_t(i)];
  if (pass_.defers() && v.is_weight) return {};
  if (v.parameter) return pass_.drops() ? Destination() : v.parameter->accumulate_target();
  if (v.grad.defined() && v.grad.is_dense() && is_sole_owner(v.grad)) return {&v.grad, true};
  return {};
}

// The vertex of the parameter of which input i is a 16-bit copy that no gradient has reached; else
// null. A gradient that has come in 16 bits goes on to the parameter as a whole.
VariableNode* BackwardContext::copied_parameter(int i) const {
  const VariableNode& v = *node_.inputs_[size_t(i)];
  VariableNode* source = v.grad.defined() ? nullptr : detail::copied_parameter(v);
  return source && source->requires_grad ? source : nullptr;
}

BackwardContext::Destination BackwardContext::wide_destination(int i) {
  if (create_graph_ || !needs(i)) return {};
  pass_.resume();
  VariableNode* source = copied_parameter(i);
  const bool waits = pass_.defers() && node_.inputs_[size_t(i)]->is_weight;
  if (!source || waits || pass_.drops() || pass_.retains()) return destination(i);
  return source->parameter->accumulate_target();
}

void BackwardContext::written(int i) {
  VariableNode* v = node_.inputs_[size_t(i)].get();
  if (VariableNode* source = copied_parameter(i)) v = source;
  if (v->parameter) v->parameter->mark_written();
}

void BackwardContext::set_grad(int i, const Variable& g) {
  if (!g.defined() || !needs(i)) return;
  pass_.resume();
  VariableNode& v = *node_.inputs_[size_t(i)];
  CATENA_CHECK(GradientError,
               g.shape() == v.shape && g.dtype() == v.dtype && g.device() == v.device,
               node_.label(), ": backward gave a gradient of ", g.shape(), " ", g.dtype(), " on ",
               g.device(), " for input ", i, " of ", v.shape, " ", v.dtype, " on ", v.device);
  if (pass_.defers() && v.is_weight) return pass_.keep_ready(v, g, &node_);
  pass_.give(v, g);
}

void contribute(VariableNode& v, const Variable& g, bool create_graph) {
  if (create_graph) {
    if (v.grad_variable) {
      const Variable total = add_recorded(Variable(v.grad_variable.get()), g);
      v.grad_variable = IntrusivePtr<VariableBody>(total.body());
    } else {
      v.grad_variable = IntrusivePtr<VariableBody>(g.body());
    }
    if (!v.parameter) {
      v.grad = Variable(v.grad_variable.get()).data();
      return;
    }
  }
  if (v.parameter) {
    v.parameter->add_gradient(g.data());
  } else if (!v.grad.defined()) {
    v.grad = g.data();
  } else if (v.grad.is_dense() && is_sole_owner(v.grad)) {
    add(v.grad, g.data(), v.grad);
  } else {
    v.grad = add(v.grad, g.data());
  }
}

}  // namespace catena
