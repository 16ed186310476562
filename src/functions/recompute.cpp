// recompute: a node that keeps its inputs, and runs a separate pass over what it computes again.
#include "catena/functions/recompute.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "catena/array/random_log.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/parameter_state.h"
#include "catena/core/stream.h"

namespace catena::functions {
namespace {

using Body = std::function<Variables(const Variables&)>;
constexpr const char* kName = "Recompute";

// Collects the parameters that f uses, in its first run, in which nothing else wants a gradient.
class UsedParameters : public FunctionHook {
 public:
  void forward_begins(const FunctionCall& call) override {
    for (const Variable* v : call.inputs())
      if (v->requires_grad()) note(call, *v);
  }
  Variables parameters;

 private:
  void note(const FunctionCall& call, const Variable& v) {
    CATENA_CHECK(GradientError, v.node()->parameter != nullptr, kName, ": ", call.label(),
                 " uses a variable of shape ", v.shape(),
                 " that wants a gradient and is not an input; give it to recompute as an input");
    const auto same = [&](const Variable& known) { return same_variable(known, v); };
    if (std::none_of(parameters.begin(), parameters.end(), same)) parameters.push_back(v);
  }
};

// What must be the same in both runs.
struct Surroundings {
  Device device = current_device();
  Dtype low = AutocastScope::low();
};

// Its inputs are those of f, and then the parameters that f uses.
class RecomputeNode final : public FunctionNode {
 public:
  RecomputeNode(Body f, RandomLog log, const Surroundings& surroundings, size_t inputs,
                size_t outputs)
      : f_(std::move(f)),
        log_(std::move(log)),
        surroundings_(surroundings),
        inputs_(inputs),
        outputs_(outputs) {}
  std::string label() const override { return kName; }
  bool is_differentiable() const override { return false; }
  bool splits() const override { return false; }

  void backward(BackwardContext& context) override {
    Arrays gys;
    for (size_t j = 0; j < outputs_; ++j) {
      const Variable gy = context.grad_output(static_cast<int>(j));
      gys.push_back(gy.defined() ? gy.data() : Array());
    }
    const Variables xs = roots(context);
    run_pass(again(xs), gys);
    for (size_t i = 0; i < xs.size(); ++i) {
      const Array g = xs[i].body()->node ? xs[i].body()->node->grad : Array();
      if (g.defined()) context.set_grad(static_cast<int>(i), Variable::constant(g));
    }
  }

 private:
  // The inputs at the beginning of a separate graph.
  Variables roots(BackwardContext& context) const {
    Variables xs;
    for (size_t i = 0; i < inputs_; ++i) {
      const Array x = context.input(static_cast<int>(i)).data();
      xs.push_back(inputs()[i]->requires_grad ? Variable(x) : Variable::constant(x));
    }
    return xs;
  }

  Variables again(const Variables& xs) {
    const ForceBackprop on;
    const DeviceScope device(surroundings_.device);
    const AutocastScope autocast(surroundings_.low);
    const RandomLogScope numbers(log_, RandomLogScope::Mode::kRepeat);
    const RepeatedForward repeated;
    const Variables ys = f_(xs);
    CATENA_CHECK(ValueError, ys.size() == outputs_, kName, ": f gave ", ys.size(),
                 " results when it ran again, and ", outputs_, " at first");
    return ys;
  }

  // Over the results that gradients came to and that depend on anything.
  static void run_pass(const Variables& ys, const Arrays& gys) {
    Variables starts;
    Arrays gradients;
    for (size_t j = 0; j < ys.size(); ++j) {
      if (!gys[j].defined() || !(ys[j].creator() || ys[j].requires_grad())) continue;
      starts.push_back(ys[j]);
      gradients.push_back(gys[j]);
    }
    if (!starts.empty()) catena::backward(starts, gradients);
  }

  Body f_;
  RandomLog log_;
  Surroundings surroundings_;
  size_t inputs_, outputs_;
};

}  // namespace

Variables recompute(Body f, const Variables& inputs) {
  CATENA_CHECK(ValueError, bool(f), kName, ": expected a function, got an empty one");
  if (!is_recording()) return f(inputs);
  FunctionCall call(kName, Autocast::kNone, inputs);
  RandomLog log;
  UsedParameters used;
  const Surroundings surroundings;
  Arrays results;
  {
    const NoBackprop off;
    const FunctionHookScope hook(used);
    const RandomLogScope numbers(log, RandomLogScope::Mode::kNote);
    Variables constants;
    for (const Variable* x : call.inputs()) constants.push_back(Variable::constant(x->data()));
    for (const Variable& y : f(constants)) results.push_back(y.data());
  }
  for (const Variable& parameter : used.parameters) call.add(parameter);
  return call.record(results, [&] {
    auto node = make_node<RecomputeNode>(std::move(f), std::move(log), surroundings, inputs.size(),
                                         results.size());
    for (size_t i = 0; i < inputs.size(); ++i) node->save_input(static_cast<int>(i), call[i]);
    return node;
  });
}

}  // namespace catena::functions
