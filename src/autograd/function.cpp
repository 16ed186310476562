// The adapter between users' Functions, written on arrays, and the recorded graph.
#include "catena/autograd/function.h"

#include <cxxabi.h>

#include <cstdlib>
#include <optional>
#include <typeinfo>
#include <unordered_map>

#include "autograd/contribute.h"
#include "catena/autograd/function_call.h"
#include "catena/core/config.h"

namespace catena {
namespace {

// "Square" for user::Square; kept, since demangling costs about a microsecond.
const std::string& class_name(const std::type_info& type) {
  thread_local std::unordered_map<const char*, std::string> names;
  std::string& name = names[type.name()];
  if (!name.empty()) return name;
  int status = 0;
  char* full = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  name = status == 0 ? full : type.name();
  std::free(full);
  const size_t end = name.find('<');  // colons inside template arguments are not of the name
  const size_t colons = name.rfind("::", end);
  if (colons != std::string::npos) name.erase(0, colons + 2);
  return name;
}

// Where a function runs: on the device of its first array.
std::optional<Device> device_of(const Arrays& arrays) {
  for (const Array& a : arrays) {
    if (a.defined()) return a.device();
  }
  return {};
}

bool any_on_gpu(const Arrays& arrays) {
  for (const Array& a : arrays) {
    if (a.defined() && a.device().is_cuda()) return true;
  }
  return false;
}

// Notices writes into arrays that a user's method was only lent.
class WriteGuard {
 public:
  explicit WriteGuard(const Arrays& arrays) : arrays_(arrays) {
    for (const Array& a : arrays) versions_.push_back(a.defined() ? write_count(a) : 0);
  }
  void check(const Function& function, const char* method, const char* what) const {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      CATENA_CHECK(GradientError, !arrays_[i].defined() || write_count(arrays_[i]) == versions_[i],
                   function.label(), ": ", method, " wrote into ", what, " ", i, " (shape ",
                   arrays_[i].shape(), ", ", arrays_[i].dtype(), "); write into a copy instead");
    }
  }

 private:
  const Arrays& arrays_;
  std::vector<uint64_t> versions_;
};

}  // namespace

class UserFunctionNode final : public FunctionNode {
 public:
  UserFunctionNode(std::shared_ptr<Function> function, const FunctionCall& call, const Arrays& ys)
      : function_(std::move(function)),
        differentiable_(function_->differentiable()),
        output_count_(static_cast<int>(ys.size())) {
    for (const Parameter& p : function_->uses()) also_uses_.emplace_back(p.variable().node());
    if (!function_->is_selective_) {
      for (size_t i = 0; i < call.size(); ++i) keep_input(static_cast<int>(i), call);
      return;
    }
    for (int i : function_->saved_inputs_) keep_input(i, call);
    for (int j : function_->saved_outputs_) {
      check_saved("output", j, ys.size());
      save_output(j, ys[static_cast<size_t>(j)]);
      saved_outputs_.push_back(j);
    }
  }
  std::string label() const override { return function_->label(); }
  bool is_differentiable() const override { return differentiable_ != nullptr; }
  bool splits() const override { return false; }
  AlsoUses also_uses() const override { return also_uses_; }

  void backward(BackwardContext& context) override {
    Variables gys;
    for (int j = 0; j < output_count_; ++j) gys.push_back(context.grad_output(j));
    const DeviceScope scope(inputs().empty() ? current_device() : inputs()[0]->device);
    if (differentiable_)
      give(context, differentiable_->gradients(saved(context), gys));
    else
      give(context, run(saved(context).inputs, gys));
  }

 private:
  void check_saved(const char* what, int i, size_t count) const {
    CATENA_CHECK(IndexError, i >= 0 && static_cast<size_t>(i) < count, label(), ": save: ", what,
                 " ", i, " does not exist; there are ", count);
  }
  void keep_input(int i, const FunctionCall& call) {
    check_saved("input", i, call.size());
    save_input(i, call[static_cast<size_t>(i)]);
    saved_inputs_.push_back(i);
  }
  DifferentiableFunction::Saved saved(BackwardContext& context) const {
    DifferentiableFunction::Saved s{Variables(inputs().size()), Variables(size_t(output_count_))};
    for (int i : saved_inputs_) s.inputs[static_cast<size_t>(i)] = context.input(i);
    for (int j : saved_outputs_) s.outputs[static_cast<size_t>(j)] = context.output(j);
    return s;
  }

  // The form on arrays.
  Variables run(const Variables& inputs, const Variables& grad_outputs) {
    const auto arrays = [](const Variables& variables) {
      Arrays list;
      for (const Variable& v : variables) list.push_back(v.defined() ? v.data() : Array());
      return list;
    };
    const Arrays xs = arrays(inputs), gys = arrays(grad_outputs);
    const WriteGuard inputs_guard(xs), gradients_guard(gys);
    Variables gxs;
    for (const Array& gx : function_->backward(xs, gys))
      gxs.push_back(gx.defined() ? Variable::constant(gx) : Variable());
    inputs_guard.check(*function_, "backward", "input");
    gradients_guard.check(*function_, "backward", "output gradient");
    return gxs;
  }

  void give(BackwardContext& context, const Variables& gxs) const {
    CATENA_CHECK(GradientError, gxs.size() == inputs().size(), label(), ": backward returned ",
                 gxs.size(), " gradients for ", inputs().size(),
                 " inputs; return one for each, a null array for none");
    for (size_t i = 0; i < gxs.size(); ++i) {
      if (!gxs[i].defined()) continue;
      check_gradient(i, *inputs()[i], gxs[i]);
      context.set_grad(static_cast<int>(i), gxs[i]);
    }
  }

  void check_gradient(size_t i, const VariableNode& x, const Variable& gx) const {
    CATENA_CHECK(DtypeError, gx.dtype() == x.dtype, label(),
                 ": backward returned a gradient of dtype ", gx.dtype(), " for input ", i,
                 " of dtype ", x.dtype);
    CATENA_CHECK(ShapeError, gx.shape() == x.shape, label(),
                 ": backward returned a gradient of shape ", gx.shape(), " for input ", i,
                 " of shape ", x.shape);
    CATENA_CHECK(DeviceError, gx.device() == x.device, label(),
                 ": backward returned a gradient on ", gx.device(), " for input ", i, " on ",
                 x.device);
  }

  std::shared_ptr<Function> function_;
  DifferentiableFunction* differentiable_;  // the same, if its backward is on variables
  int output_count_;
  std::vector<int> saved_inputs_, saved_outputs_;
  std::vector<IntrusivePtr<VariableNode>> also_uses_;
};

namespace {

void check_types(const Function& function, const Arrays& arrays) {
  if (!config().type_check) return;
  try {
    function.check_type_forward(TypeInfoTuple(arrays));
  } catch (const InvalidType& mismatch) {
    throw InvalidType(mismatch.expect(), mismatch.actual(),
                      message("Invalid operation is performed in: ", function.label(),
                              " (Forward)\n\n", mismatch.what()));
  }
}

Arrays run_forward(Function& function, const Arrays& xs) {
  std::optional<DeviceScope> scope;
  if (const auto device = device_of(xs)) scope.emplace(*device);
  const WriteGuard guard(xs);
  Arrays ys = function.forward(xs);
  guard.check(function, "forward", "input");
  for (size_t j = 0; j < ys.size(); ++j) {
    CATENA_CHECK(ValueError, ys[j].defined(), function.label(),
                 ": forward returned an undefined array as output ", j);
  }
  return ys;
}

}  // namespace

std::string Function::label() const { return class_name(typeid(*this)); }
void Function::check_type_forward(const TypeInfoTuple&) const {}

void Function::save(const std::vector<int>& inputs, const std::vector<int>& outputs) {
  is_selective_ = true;
  saved_inputs_ = inputs;
  saved_outputs_ = outputs;
}

Arrays Function::forward(const Arrays& inputs) {
  return any_on_gpu(inputs) ? forward_gpu(inputs) : forward_cpu(inputs);
}
Arrays Function::forward_cpu(const Arrays&) {
  fail<ValueError>(label(), ": neither forward nor forward_cpu is overridden");
}
Arrays Function::forward_gpu(const Arrays&) {
  fail<ValueError>(label(), ": neither forward nor forward_gpu is overridden");
}

Arrays Function::backward(const Arrays& inputs, const Arrays& grad_outputs) {
  return any_on_gpu(inputs) || any_on_gpu(grad_outputs) ? backward_gpu(inputs, grad_outputs)
                                                        : backward_cpu(inputs, grad_outputs);
}
Arrays Function::backward_cpu(const Arrays&, const Arrays&) {
  fail<GradientError>(label(),
                      ": a gradient came to this function, but neither backward nor "
                      "backward_cpu is overridden; return null arrays, "
                      "Arrays(inputs.size()), if none flows through it");
}
Arrays Function::backward_gpu(const Arrays&, const Arrays&) {
  fail<GradientError>(label(),
                      ": a gradient came to this function, but neither backward nor "
                      "backward_gpu is overridden; return null arrays, "
                      "Arrays(inputs.size()), if none flows through it");
}

Variables apply_function(std::shared_ptr<Function> function, const Variables& inputs) {
  const std::string label = function->label();
  FunctionCall call(label.c_str(), Autocast::kNone, inputs);
  Arrays xs;
  for (const Variable* x : call.inputs()) xs.push_back(x->data());
  check_types(*function, xs);
  call.is_recorded();  // what cannot be mixed is refused before anything runs
  const Arrays ys = run_forward(*function, xs);
  const Mean mean = function->mean_;
  const Variables results =
      call.record(ys, [&] { return make_node<UserFunctionNode>(std::move(function), call, ys); });
  if (mean.counted.defined() && !results.empty()) declare_mean(results[0], mean);
  return results;
}

}  // namespace catena
