// Starts of passes through the recorded graph, and the checks of their outputs and gradients.
#include "catena/autograd/backward.h"

#include <string>
#include <vector>

#include "autograd/backward_pass.h"
#include "catena/array/creation.h"
#include "catena/core/profiler_range.h"

namespace catena {
namespace {

// "output 2" of a list, or the variable whose backward() was called.
std::string shown_output(int index) {
  return index < 0 ? std::string("this variable") : message("output ", index);
}

void check_recorded(const Variable& v, int index) {
  CATENA_CHECK(GradientError, !v.is_volatile(), "backward: ", shown_output(index),
               " is volatile: its function calls were not recorded; make the inputs with "
               "Volatile::off where gradients are wanted");
  CATENA_CHECK(GradientError, v.creator() || v.requires_grad(),
               "backward: nothing was recorded for ", shown_output(index),
               ": it was computed under NoBackprop, from constants alone (an array given as a "
               "variable is one; Variable(array) wants a gradient), or by a function without a "
               "gradient");
}

void check_one_element(const Variable& v, int index) {
  CATENA_CHECK(GradientError, v.size() == 1, "backward: ", shown_output(index), ", of shape ",
               v.shape(), ", needs a gradient to start from; ",
               index < 0 ? "call set_grad first" : "give one for it",
               ", or reduce it to one element");
}

Array ones_for_one_element(const Variable& v, int index) {
  check_one_element(v, index);
  return ones_like(v.data());
}

void check_given_gradient(const Variable& v, const Array& gradient, size_t index) {
  CATENA_CHECK(DtypeError, gradient.dtype() == v.dtype(), "backward: gradient ", index, " is ",
               gradient.dtype(), ", its output is ", v.dtype());
  CATENA_CHECK(DeviceError, gradient.device() == v.device(), "backward: gradient ", index,
               " is on ", gradient.device(), ", its output is on ", v.device());
  CATENA_CHECK(ShapeError, gradient.shape() == v.shape(), "backward: gradient ", index,
               " has shape ", gradient.shape(), ", its output has ", v.shape());
}

}  // namespace

[[gnu::noinline]] void Variable::backward(const BackwardOptions& options) const {
  known("Variable::backward");
  check_recorded(*this, -1);
  if (!creator()) return;
  const ProfilerRange range("Variable::backward");
  VariableNode& start = *node();
  if (!start.grad.defined()) check_one_element(*this, -1);  // the pass begins with one
  start.grad_is_own = false;                                // functions may hand it on
  if (options.create_graph) {
    if (!start.grad.defined()) start.grad = ones_like(data());
    const Variable known = grad_variable();
    start.grad_variable =
        IntrusivePtr<VariableBody>((known.defined() ? known : constant(start.grad)).body());
  }
  BackwardPass(start, options).run(__builtin_frame_address(0));
}

[[gnu::noinline]] void backward(const Variables& outputs, const Arrays& gradients,
                                const BackwardOptions& options) {
  CATENA_CHECK(ValueError, !outputs.empty(), "backward: no outputs to start from were given");
  CATENA_CHECK(ValueError, gradients.empty() || gradients.size() == outputs.size(),
               "backward: ", outputs.size(), " outputs came with ", gradients.size(),
               " gradients; give one for each (a null array means one), or none at all");
  const ProfilerRange range("backward");
  std::vector<BackwardPass::Start> starts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Variable& output = outputs[i];
    CATENA_CHECK(ValueError, output.defined(), "backward: output ", i, " is undefined");
    check_recorded(output, int(i));
    const bool given = !gradients.empty() && gradients[i].defined();
    if (given) check_given_gradient(output, gradients[i], i);
    const Array gradient = given ? gradients[i] : ones_for_one_element(output, int(i));
    starts.push_back({output.node(), Variable::constant(gradient)});
  }
  BackwardPass(starts, options).run(__builtin_frame_address(0));
}

}  // namespace catena
