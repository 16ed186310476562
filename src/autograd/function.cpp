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

class UserFunctionNode final : public FunctionNode {
 public:
  explicit UserFunctionNode(std::shared_ptr<Function> function, size_t outputs)
      : function_(std::move(function)), output_count_(outputs) {
    for (const Parameter& p : function_->uses()) also_uses_.emplace_back(p.variable().node());
  }
  std::string label() const override { return function_->label(); }
  bool is_differentiable() const override { return false; }
  bool splits() const override { return false; }
  AlsoUses also_uses() const override { return also_uses_; }

  void backward(BackwardContext& context) override {
    Arrays xs, gys;
    for (size_t i = 0; i < inputs().size(); ++i)
      xs.push_back(context.input(static_cast<int>(i)).data());
    for (size_t j = 0; j < output_count_; ++j) {
      const Variable gy = context.grad_output(static_cast<int>(j));
      gys.push_back(gy.defined() ? gy.data() : Array());
    }
    const Arrays gxs = run(xs, gys);
    CATENA_CHECK(GradientError, gxs.size() == xs.size(), label(), ": backward returned ",
                 gxs.size(), " gradients for ", xs.size(),
                 " inputs; return one for each, a null array for none");
    for (size_t i = 0; i < gxs.size(); ++i) {
      if (!gxs[i].defined()) continue;
      check_gradient(i, xs[i], gxs[i]);
      if (context.needs(static_cast<int>(i)))
        context.set_grad(static_cast<int>(i), Variable::constant(gxs[i]));
    }
  }

 private:
  Arrays run(const Arrays& xs, const Arrays& gys) {
    std::optional<DeviceScope> scope;
    if (const auto device = device_of(xs)) scope.emplace(*device);
    const WriteGuard inputs_guard(xs), gradients_guard(gys);
    Arrays gxs = function_->backward(xs, gys);
    inputs_guard.check(*function_, "backward", "input");
    gradients_guard.check(*function_, "backward", "output gradient");
    return gxs;
  }

  void check_gradient(size_t i, const Array& x, const Array& gx) const {
    CATENA_CHECK(DtypeError, gx.dtype() == x.dtype(), label(),
                 ": backward returned a gradient of dtype ", gx.dtype(), " for input ", i,
                 " of dtype ", x.dtype());
    CATENA_CHECK(ShapeError, gx.shape() == x.shape(), label(),
                 ": backward returned a gradient of shape ", gx.shape(), " for input ", i,
                 " of shape ", x.shape());
    CATENA_CHECK(DeviceError, gx.device() == x.device(), label(),
                 ": backward returned a gradient on ", gx.device(), " for input ", i, " on ",
                 x.device());
  }

  std::shared_ptr<Function> function_;
  size_t output_count_;
  std::vector<IntrusivePtr<VariableNode>> also_uses_;
};

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
  return call.record(ys, [&] {
    auto node = make_node<UserFunctionNode>(std::move(function), ys.size());
    for (size_t i = 0; i < call.size(); ++i) node->save_input(static_cast<int>(i), call[i]);
    return node;
  });
}

}  // namespace catena
