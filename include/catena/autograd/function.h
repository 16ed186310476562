// Function: the way users define their own differentiable functions, on arrays.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/autograd/function_node.h"
#include "catena/autograd/mean.h"
#include "catena/autograd/parameter.h"
#include "catena/autograd/type_check.h"
#include "catena/autograd/variable.h"

namespace catena {

// Derive, override forward and backward (or the _cpu and _gpu pairs), apply with call():
//
//   struct Square : Function {
//     Arrays forward(const Arrays& x) override { return {x[0] * x[0]}; }
//     Arrays backward(const Arrays& x, const Arrays& gy) override { return {2 * x[0] * gy[0]}; }
//   };
//   Variable y = call(Square{}, x);
//
// The object is copied into the graph, so that what forward() stores in members is there in
// backward(). Inputs are saved, or those that forward() names by save(); the others are null arrays
// in backward. Entries of gy may be null arrays (no gradient), as may returned ones. The device of
// the first array is current during the calls. Writing into an input or a gy is not allowed.
// Differentiating backward itself (create_graph) is a GradientError; see DifferentiableFunction.
class Function {
 public:
  virtual ~Function() = default;
  virtual std::string label() const;  // class name by default
  // Called before forward when type checks are on; see type_check.h.
  virtual void check_type_forward(const TypeInfoTuple& in_types) const;
  // Parameters that are not inputs, and which backward() reaches by a separate pass, because it
  // computes a part of the model again. Asked once, after forward. Their gradients are final after
  // this function's backward. Those that are not named here are final at the end of the whole pass,
  // so that ranks average them late; one that was final before is a GradientError.
  virtual std::vector<Parameter> uses() const { return {}; }
  // Dispatch on the device of the inputs by default; the _cpu and _gpu forms throw by default.
  virtual Arrays forward(const Arrays& inputs);
  virtual Arrays forward_cpu(const Arrays& inputs);
  virtual Arrays forward_gpu(const Arrays& inputs);
  // One gradient for each input. The _cpu and _gpu forms throw by default: a function that no
  // gradient flows through returns Arrays(inputs.size()), null arrays.
  virtual Arrays backward(const Arrays& inputs, const Arrays& grad_outputs);
  virtual Arrays backward_cpu(const Arrays& inputs, const Arrays& grad_outputs);
  virtual Arrays backward_gpu(const Arrays& inputs, const Arrays& grad_outputs);

 protected:
  // In forward: the numbers of the inputs and outputs that are kept for backward. Without a call
  // all inputs are kept, and no output.
  void save(const std::vector<int>& inputs, const std::vector<int>& outputs = {});
  // In forward: the output, of one element, is a mean that was divided by `counted`, of `expected`
  // if everything had counted (mean.h). Training over ranks, accumulated passes and micro-batches
  // then gives what one pass over all gives.
  void set_mean(const Array& counted, double expected = 0) { mean_ = {counted, expected}; }

 private:
  friend class UserFunctionNode;
  friend class DifferentiableFunction;
  virtual class DifferentiableFunction* differentiable() { return nullptr; }
  friend Variables apply_function(std::shared_ptr<Function> function, const Variables& inputs);
  bool is_selective_ = false;
  Mean mean_;
  std::vector<int> saved_inputs_, saved_outputs_;
};

// A function whose backward is written on variables, with other functions, so that it can be
// differentiated any number of times:
//
//   struct Exp : DifferentiableFunction {
//     Arrays forward(const Arrays& x) override {
//       save({}, {0});
//       return {catena::exp(x[0])};
//     }
//     Variables gradients(const Saved& saved, const Variables& gy) override {
//       return {gy[0] * saved.outputs[0]};
//     }
//   };
class DifferentiableFunction : public Function {
 public:
  // Undefined where nothing was saved.
  struct Saved {
    Variables inputs, outputs;
  };
  // One gradient for each input, undefined where none flows; gy[j] is undefined where none came to
  // output j. At first order nothing is recorded.
  virtual Variables gradients(const Saved& saved, const Variables& grad_outputs) = 0;

 private:
  DifferentiableFunction* differentiable() final { return this; }
};

// Applies a shared function object; the object must not be applied again while the graph lives.
Variables apply_function(std::shared_ptr<Function> function, const Variables& inputs);

// Applies a function with any number of outputs.
template <class F>
requires std::is_base_of_v<Function, F> Variables call_multi(F function, const Variables& inputs) {
  return apply_function(std::make_shared<F>(std::move(function)), inputs);
}
// Applies a function with one output.
template <class F, class... Inputs>
requires std::is_base_of_v<Function, F> Variable call(F function, const Inputs&... inputs) {
  Variables outputs =
      apply_function(std::make_shared<F>(std::move(function)), Variables{inputs...});
  CATENA_CHECK(GradientError, outputs.size() == 1, "call: the function has ", outputs.size(),
               " outputs; use call_multi");
  return outputs[0];
}

}  // namespace catena
