// Normalization of samples or positions that are spread over ranks: sequence parallelism (V.
// Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022).
//
// Between the products of a tensor-parallel model each rank works on its slice of the samples or
// positions, along the first axis. So normalization, dropout and residual sums are not done size()
// times, and their activations take a share of 1 / size of the memory:
//
//   h = h + down(F::gelu(up(norm(h))));   // h is a slice
//
// with ColumnParallelLinear up(..., {.sequence_parallel = true}), which gathers the slices, and
// RowParallelLinear down(..., {.sequence_parallel = true}), which adds up and scatters. Other
// parameters that work on slices, such as those of a plain Linear or of a bias, need
// F::copy_to_ranks(parameter, comm), so that the ranks' gradients are summed.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/functions/normalization/layer_normalization.h"

namespace catena::parallel {

// LayerNormalization of this rank's rows, with gamma and beta whole: the ranks' gradients of them
// are summed, so that they stay equal. All ranks make the call and the backward passes. On whole x,
// which all ranks normalize alike, use F::LayerNormalization. Options and errors are those of
// LayerNormalization; x must be on comm.device(). Copies share the communicator, which they keep
// alive.
class SequenceParallelLayerNormalization : public Parameterized {
 public:
  SequenceParallelLayerNormalization(int64_t size, Communicator& comm,
                                     const functions::LayerNormalizationOptions& options = {});
  SequenceParallelLayerNormalization(const Shape& size, Communicator& comm,
                                     const functions::LayerNormalizationOptions& options = {});

  // See functions::layer_normalization.
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

  OwnedParameter gamma;  // (size); undefined without use_gamma
  OwnedParameter beta;   // (size); undefined without use_beta

 private:
  CommunicatorPtr comm_;
  Shape size_;
  double eps_;
  Dtype dtype_;
};

// RMSNormalization of this rank's rows, in the same way.
class SequenceParallelRMSNormalization : public Parameterized {
 public:
  SequenceParallelRMSNormalization(int64_t size, Communicator& comm,
                                   const functions::RMSNormalizationOptions& options = {});
  SequenceParallelRMSNormalization(const Shape& size, Communicator& comm,
                                   const functions::RMSNormalizationOptions& options = {});

  // See functions::rms_normalization.
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

  OwnedParameter gamma;  // (size); undefined without use_gamma

 private:
  CommunicatorPtr comm_;
  Shape size_;
  double eps_;
  Dtype dtype_;
};

}  // namespace catena::parallel
