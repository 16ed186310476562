// Normalization of the numbers of a sample by their own mean and deviation, as functions and as
// layers: layer normalization (J. Ba, J. Kiros and G. Hinton, Layer Normalization, 2016) and root
// mean square normalization (B. Zhang and R. Sennrich, Root Mean Square Layer Normalization,
// NeurIPS 2019).
#pragma once

#include <cstdint>
#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// y = (x - mean) / sqrt(var + eps) * gamma + beta, with the mean and the (biased) variance of each
// row. The shape of gamma and beta is that of the last axes of x, over which a row extends: (size)
// normalizes each vector along the last axis. x is of any floating dtype. gamma and beta are
// float64 where x is, else float32; those of 16-bit x may be of x's dtype, too.
//
// Statistics are made in float32 or wider, without loss where the mean is large beside the
// deviation. A row of one number has no deviation: it becomes beta. An x that is not contiguous is
// copied. Differentiable any number of times. One kernel forward; backward one for x, and two for
// gamma and beta. On a GPU few long rows take two kernels instead of one.
//
// InvalidType for operands that do not fit, ShapeError for a gamma without axes, DeviceError for
// operands on different devices, ValueError for a negative eps.
Variable layer_normalization(const VariableOperand& x, const VariableOperand& gamma,
                             const VariableOperand& beta, double eps = 1e-5);

// y = x / sqrt(mean of x^2 + eps) * gamma; the rest is as in layer_normalization.
Variable rms_normalization(const VariableOperand& x, const VariableOperand& gamma,
                           double eps = 1e-6);

// The results of a normalization of a sum.
struct AddNormalizationResult {
  Variable y;    // normalized
  Variable sum;  // x + residual
};
// sum = x + residual, and y = layer_normalization(sum, gamma, beta, eps) or rms_normalization, in
// one kernel, as between the blocks of a transformer. x and residual are of one shape; of different
// floating dtypes both results have the wider one, in an AutocastScope its 16 bits instead of
// float32. The sum is rounded to its dtype before it is normalized, so that results are those of
// the separate calls. Backward one kernel makes the gradient of x, which is that of residual, too,
// and adds that of the sum; gamma and beta as in layer_normalization. Operands that are not
// contiguous are copied. Gradients of any order. Errors are those of layer_normalization.
AddNormalizationResult add_layer_normalization(const VariableOperand& x,
                                               const VariableOperand& residual,
                                               const VariableOperand& gamma,
                                               const VariableOperand& beta, double eps = 1e-5);
AddNormalizationResult add_rms_normalization(const VariableOperand& x,
                                             const VariableOperand& residual,
                                             const VariableOperand& gamma, double eps = 1e-6);

// The numbers, parts, dtype and initial values of a LayerNormalization.
struct LayerNormalizationOptions {
  double eps = 1e-5;
  Dtype dtype = Dtype::kFloat32;    // of gamma and beta
  bool use_gamma = true;            // false: no gamma, as if it were 1
  bool use_beta = true;             // false: no beta, as if it were 0
  InitialValue initial_gamma = {};  // (size) instead of ones
  InitialValue initial_beta = {};   // (size) instead of zeros
};

// Layer normalization with learned gamma and beta, on the current device.
class LayerNormalization : public Parameterized {
 public:
  // `size` is the extent of the last axis of x, or those of several last axes. ValueError for
  // extents below 1 and a negative eps, ShapeError for initial arrays of another shape, DtypeError
  // unless dtype is floating.
  explicit LayerNormalization(int64_t size, const LayerNormalizationOptions& options = {});
  explicit LayerNormalization(const Shape& size, const LayerNormalizationOptions& options = {});

  // See layer_normalization and add_layer_normalization.
  Variable operator()(const VariableOperand& x) const;
  AddNormalizationResult operator()(const VariableOperand& x,
                                    const VariableOperand& residual) const;

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  // The numbers of the layer.
  const Shape& size() const { return size_; }
  double eps() const { return eps_; }

  OwnedParameter gamma;  // (size); undefined without use_gamma
  OwnedParameter beta;   // (size); undefined without use_beta

 private:
  Shape size_;
  double eps_;
  bool use_gamma_, use_beta_;
};

// The numbers, parts, dtype and initial values of an RMSNormalization.
struct RMSNormalizationOptions {
  double eps = 1e-6;
  Dtype dtype = Dtype::kFloat32;    // of gamma
  bool use_gamma = true;            // false: no gamma, as if it were 1
  InitialValue initial_gamma = {};  // (size) instead of ones
};

// Root mean square normalization with a learned gamma, on the current device.
class RMSNormalization : public Parameterized {
 public:
  // As for LayerNormalization.
  explicit RMSNormalization(int64_t size, const RMSNormalizationOptions& options = {});
  explicit RMSNormalization(const Shape& size, const RMSNormalizationOptions& options = {});

  // See rms_normalization and add_rms_normalization.
  Variable operator()(const VariableOperand& x) const;
  AddNormalizationResult operator()(const VariableOperand& x,
                                    const VariableOperand& residual) const;

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  // The numbers of the layer.
  const Shape& size() const { return size_; }
  double eps() const { return eps_; }

  OwnedParameter gamma;  // (size); undefined without use_gamma

 private:
  Shape size_;
  double eps_;
  bool use_gamma_;
};

}  // namespace catena::functions
