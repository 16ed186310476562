// Bilinear products of two inputs: bilinear and the layer Bilinear.
#pragma once

#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// y[i, l] = sum over j, k of e1[i, j] * e2[i, k] * W[j, k, l], and with the others plus
// sum over j of e1[i, j] * V1[j, l], sum over k of e2[i, k] * V2[k, l], and b[l]. e1: (n, ...) and
// e2: (n, ...), flattened behind their first axis to (n, J) and (n, K); W: (J, K, L), V1: (J, L),
// V2: (K, L), b: (L). One floating dtype and device. Result (n, L). InvalidType when they do not
// fit. A composition, which needs memory for n * J * K numbers: a product of e1 and e2, then one
// with W.
Variable bilinear(const VariableOperand& e1, const VariableOperand& e2, const VariableOperand& W);
Variable bilinear(const VariableOperand& e1, const VariableOperand& e2, const VariableOperand& W,
                  const VariableOperand& V1, const VariableOperand& V2, const VariableOperand& b);

// Start values of the linear part of a Bilinear: {V1, V2, b}, or some of them by name.
struct BilinearBias {
  InitialValue V1 = {}, V2 = {};  // (left, out) and (right, out)
  InitialValue b = {};            // (out)
};

// Start values and dtype of a Bilinear.
struct BilinearOptions {
  bool nobias = false;              // without V1, V2 and b
  InitialValue initialW = {};       // (left, right, out)
  BilinearBias initial_bias = {};   // with nobias a ValueError
  std::optional<Dtype> dtype = {};  // float32, or that of an array initialW
};

// bilinear as a layer on the current device. W, V1 and V2 are normal with the deviations
// sqrt(1 / (left * right)), sqrt(1 / left) and sqrt(1 / right), b is 0, unless given. ShapeError
// for initial values of other shapes, ValueError for sizes below 1, DtypeError for integer dtypes.
class Bilinear : public Parameterized {
 public:
  Bilinear(int64_t left_size, int64_t right_size, int64_t out_size,
           const BilinearOptions& options = {});

  // Applies the layer; errors are those of bilinear().
  Variable operator()(const VariableOperand& e1, const VariableOperand& e2) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  int64_t left_size() const { return W.shape()[0]; }
  int64_t right_size() const { return W.shape()[1]; }
  int64_t out_size() const { return W.shape()[2]; }

  OwnedParameter W;   // (left, right, out)
  OwnedParameter V1;  // (left, out); undefined with nobias, as the following
  OwnedParameter V2;  // (right, out)
  OwnedParameter b;   // (out)
};

}  // namespace catena::functions
