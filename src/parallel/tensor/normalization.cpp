#include "catena/parallel/tensor/normalization.h"

#include "catena/array/creation.h"
#include "catena/parallel/tensor/functions.h"
#include "start_values.h"

namespace catena::parallel {

namespace F = functions;

namespace {

constexpr const char* kLayerNorm = "SequenceParallelLayerNormalization";
constexpr const char* kRmsNorm = "SequenceParallelRMSNormalization";

// The parameter for work on this rank's rows; a constant where the layer has none.
Variable for_own_rows(const OwnedParameter& parameter, double otherwise, const Shape& size,
                      Dtype dtype, Communicator& comm) {
  if (parameter.defined()) return F::copy_to_ranks(parameter, comm);
  return Variable::constant(full(size, otherwise, {dtype, comm.device()}));
}

}  // namespace

SequenceParallelLayerNormalization::SequenceParallelLayerNormalization(
    int64_t size, Communicator& comm, const F::LayerNormalizationOptions& options)
    : SequenceParallelLayerNormalization(Shape{size}, comm, options) {}

SequenceParallelLayerNormalization::SequenceParallelLayerNormalization(
    const Shape& size, Communicator& comm, const F::LayerNormalizationOptions& options)
    : comm_(kept_communicator(kLayerNorm, comm)),
      size_(size),
      eps_(options.eps),
      dtype_(options.dtype) {
  F::LayerNormalization plain(size, options);
  gamma = std::move(plain.gamma);
  beta = std::move(plain.beta);
}

Variable SequenceParallelLayerNormalization::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, comm_, kLayerNorm, ": this layer was moved from");
  return F::layer_normalization(x, for_own_rows(gamma, 1, size_, dtype_, *comm_),
                                for_own_rows(beta, 0, size_, dtype_, *comm_), eps_);
}

void SequenceParallelLayerNormalization::visit_parameters(const Visitor& visitor,
                                                          const std::string& prefix) {
  if (gamma.defined()) visitor(prefix + "gamma", gamma);
  if (beta.defined()) visitor(prefix + "beta", beta);
}

SequenceParallelRMSNormalization::SequenceParallelRMSNormalization(
    int64_t size, Communicator& comm, const F::RMSNormalizationOptions& options)
    : SequenceParallelRMSNormalization(Shape{size}, comm, options) {}

SequenceParallelRMSNormalization::SequenceParallelRMSNormalization(
    const Shape& size, Communicator& comm, const F::RMSNormalizationOptions& options)
    : comm_(kept_communicator(kRmsNorm, comm)),
      size_(size),
      eps_(options.eps),
      dtype_(options.dtype) {
  F::RMSNormalization plain(size, options);
  gamma = std::move(plain.gamma);
}

Variable SequenceParallelRMSNormalization::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, comm_, kRmsNorm, ": this layer was moved from");
  return F::rms_normalization(x, for_own_rows(gamma, 1, size_, dtype_, *comm_), eps_);
}

void SequenceParallelRMSNormalization::visit_parameters(const Visitor& visitor,
                                                        const std::string& prefix) {
  if (gamma.defined()) visitor(prefix + "gamma", gamma);
}

}  // namespace catena::parallel
