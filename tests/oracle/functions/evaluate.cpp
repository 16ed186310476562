// Forward and backward passes of a case.
#include <algorithm>

#include "catena/array/creation.h"
#include "catena/autograd/backward.h"
#include "catena/functions/math.h"
#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {

// The gradient, zeros where nothing has flowed.
Array gradient_of(const Variable& x) {
  const Array gradient = x.grad();
  return gradient.defined() ? gradient : zeros(x.shape(), {x.dtype(), x.device()});
}

// One case's passes.
class Passes {
 public:
  Passes(const Call& call, const Inputs& inputs, const Variables& outputs) : call_(call) {
    for (const int64_t k : call.dims("wanted")) wanted_.push_back(inputs[size_t(k)]);
    const auto operands = static_cast<size_t>(call.integer("operands"));
    for (const int64_t k : call.dims("upstream")) {
      outputs_.push_back(outputs.at(size_t(k)));
      upstream_.push_back(call.array(operands + upstream_.size()));
    }
    for (size_t k = operands + upstream_.size(); k < call.count(); ++k)
      directions_.push_back(call.array(k));
  }

  void add_gradients(Results& results) const {
    if (outputs_.empty()) return;
    if (call_.flag("second")) return add_both_orders(results);
    backward(outputs_, upstream_);
    for (const Variable& x : wanted_) results.push_back(gradient_of(x));
  }

 private:
  // Upstream gradients are variables of the graph here: what is linear in its operands has second
  // gradients for them alone.
  void add_both_orders(Results& results) const {
    Variables upstream;
    Variable loss;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      upstream.push_back(Variable(upstream_[k]));
      const Variable term = functions::sum(outputs_[k] * upstream[k]);
      loss = loss.defined() ? loss + term : term;
    }
    loss.backward({.create_graph = true});
    Variables gradients;
    Arrays directions;
    for (size_t k = 0; k < wanted_.size(); ++k) {
      results.push_back(gradient_of(wanted_[k]).copy());
      const Variable g = wanted_[k].grad_variable();
      if (!g.defined() || !g.requires_grad()) continue;
      gradients.push_back(g);
      directions.push_back(directions_.at(k));
    }
    for (const Variable& x : wanted_) x.set_grad({});
    for (const Variable& u : upstream) u.set_grad({});
    if (!gradients.empty()) backward(gradients, directions);
    for (const Variable& x : wanted_) results.push_back(gradient_of(x));
    for (const Variable& u : upstream) results.push_back(gradient_of(u));
  }

  const Call& call_;
  Variables wanted_, outputs_;
  Arrays upstream_, directions_;
};

}  // namespace

Inputs::Inputs(const Call& call) : call_(call) {
  const auto operands = static_cast<size_t>(call.integer("operands"));
  const Dims wanted = call.dims("wanted");
  for (size_t k = 0; k < operands; ++k) {
    const bool wants = std::count(wanted.begin(), wanted.end(), static_cast<int64_t>(k)) > 0;
    if (!call.is_array(k))
      variables_.emplace_back();
    else
      variables_.push_back(wants ? Variable(call.array(k)) : Variable::constant(call.array(k)));
  }
}

const Variable& Inputs::operator[](size_t k) const {
  if (!variables_.at(k).defined())
    throw std::logic_error("operand " + std::to_string(k) + " is not an array");
  return variables_[k];
}

VariableOperand Inputs::operand(size_t k) const {
  if (variables_.at(k).defined()) return VariableOperand(variables_[k]);
  return VariableOperand(call_.scalar(k));
}

Variables Inputs::between(size_t begin, size_t end) const {
  Variables list;
  for (size_t k = begin; k < end; ++k) list.push_back((*this)[k]);
  return list;
}

Routine routine_of(const Function& function) {
  return [function](const Call& call) {
    const Inputs inputs(call);
    const Variables outputs = function(inputs);
    Results results;
    for (const Variable& y : outputs) results.push_back(y.data());
    Passes(call, inputs, outputs).add_gradients(results);
    return results;
  };
}

}  // namespace catena::oracle
