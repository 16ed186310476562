// Normalization of the channels of a sample in groups, as functions and as layers: group
// normalization (Y. Wu and K. He, Group Normalization, ECCV 2018), and instance normalization,
// where each channel is a group (D. Ulyanov, A. Vedaldi and V. Lempitsky, Instance Normalization:
// The Missing Ingredient for Fast Stylization, 2016).
#pragma once

#include <cstdint>
#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// y = (x - mean) / sqrt(var + eps) * gamma + beta, with the mean and the (biased) variance over a
// sample's positions and over channels / groups adjacent channels. x: (n, channels, ...), of any
// floating dtype; gamma, beta: (channels), float64 where x is, else float32; those of 16-bit x may
// be of x's dtype, too. The result does not depend on other samples, and is the same in test state.
//
// Both memory layouts are first-class: where the channels of x are last in memory, so are those of
// the result. Statistics are made in float32 or wider, without loss where the mean is large beside
// the deviation. A group of one number has no deviation: it becomes beta. Differentiable any number
// of times. One kernel forward, and up to three backward; on a GPU a few large groups take two
// kernels forward. A GPU reads groups that fit the shared memory of a block once in each pass.
//
// InvalidType for operands that do not fit, DeviceError for operands on different devices,
// ValueError for a negative eps, and unless `groups` divides the channels.
Variable group_normalization(const VariableOperand& x, int64_t groups, const VariableOperand& gamma,
                             const VariableOperand& beta, double eps = 1e-5);

// The same with as many groups as channels.
Variable instance_normalization(const VariableOperand& x, const VariableOperand& gamma,
                                const VariableOperand& beta, double eps = 1e-5);

// The numbers, parts, dtype and initial values of a GroupNormalization or InstanceNormalization.
struct GroupNormalizationOptions {
  double eps = 1e-5;
  Dtype dtype = Dtype::kFloat32;    // of gamma and beta
  bool use_gamma = true;            // false: no gamma, as if it were 1
  bool use_beta = true;             // false: no beta, as if it were 0
  InitialValue initial_gamma = {};  // (channels) instead of ones
  InitialValue initial_beta = {};   // (channels) instead of zeros
};

// Those of the layer that InstanceNormalization is made of.
using InstanceNormalizationOptions = GroupNormalizationOptions;

// Group normalization with learned gamma and beta, on the current device.
class GroupNormalization : public Parameterized {
 public:
  // `size` is the number of channels. ValueError for numbers below 1, groups that do not divide the
  // channels and a negative eps, ShapeError for initial arrays of another shape, DtypeError unless
  // dtype is floating.
  GroupNormalization(int64_t groups, int64_t size, const GroupNormalizationOptions& options = {});

  // See group_normalization.
  Variable operator()(const VariableOperand& x) const;

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  // The numbers of the layer.
  int64_t groups() const { return groups_; }
  int64_t size() const { return size_; }
  double eps() const { return eps_; }

  OwnedParameter gamma;  // (channels); undefined without use_gamma
  OwnedParameter beta;   // (channels); undefined without use_beta

 protected:
  GroupNormalization(const char* layer, int64_t groups, int64_t size,
                     const GroupNormalizationOptions& options);

 private:
  const char* layer_;
  int64_t groups_, size_;
  double eps_;
  bool use_gamma_, use_beta_;
};

// Instance normalization with learned gamma and beta: each channel is a group.
class InstanceNormalization : public GroupNormalization {
 public:
  // As for GroupNormalization.
  explicit InstanceNormalization(int64_t size, const InstanceNormalizationOptions& options = {});
};

}  // namespace catena::functions
