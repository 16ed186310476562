// Fully connected layers: linear, linear_relu and the layer Linear.
#pragma once

#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x @ W^T + b in one launch, for each of the leading axes: x (..., in) gives (..., out). W: (out,
// in); b: (out) or left out. One floating dtype and device. InvalidType when they do not fit.
// Images are not flattened: reshape them to (n, in), or give the layer LinearOptions::flatten.
Variable linear(const VariableOperand& x, const VariableOperand& W);
Variable linear(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b);
// relu(linear(x, W, b)) in one launch.
Variable linear_relu(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b);

// Initial values, bias and dtype of a Linear.
struct LinearOptions {
  double wscale = 1;               // W ~ normal(0, wscale * sqrt(1 / in_size))  (LeCun et al. 1998)
  double bias = 0;                 // initial value of b
  bool nobias = false;             // with initial_bias a ValueError
  InitialValue initialW = {};      // (out, in); taken without a copy where dtypes agree
  InitialValue initial_bias = {};  // (out)
  std::optional<Dtype> dtype = {};  // float32, or that of an array initialW
  // Whether x is (n, ...), flattened behind its first axis to (n, in), as in Chainer: for a layer
  // behind convolutions. Else x is (..., in).
  bool flatten = false;
};

// Fully connected layer y = x W^T + b on the current device. Both sizes are given: none is taken
// from the first input. ShapeError for initial arrays of other shapes, ValueError for sizes below
// 1, DtypeError for integer dtypes.
class Linear : public Parameterized {
 public:
  Linear(int64_t in_size, int64_t out_size, const LinearOptions& options = {});

  // Applies the layer: (..., in) to (..., out), or with `flatten` (n, ...) to (n, out). Errors are
  // those of linear().
  Variable operator()(const VariableOperand& x) const;
  // relu of that, in one launch.
  Variable relu(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  // Sizes of the input and the output.
  int64_t in_size() const { return W.shape()[1]; }
  int64_t out_size() const { return W.shape()[0]; }

  OwnedParameter W;  // (out, in)
  OwnedParameter b;  // (out); undefined with nobias

 private:
  bool flatten_;
};

}  // namespace catena::functions
