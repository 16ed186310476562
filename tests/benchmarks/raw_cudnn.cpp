#include "raw_cudnn.h"

#include <cuda_runtime_api.h>
#include <cudnn_ops.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace bench::raw {
namespace {

constexpr double kEps = 2e-5, kDecay = 0.1;
constexpr float kOne = 1, kZero = 0;  // factors of a result and of what was there before

void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(cudnnGetErrorString(status));
}

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

class Memory {
 public:
  explicit Memory(size_t bytes) {
    check(cudaMalloc(&data_, std::max<size_t>(bytes, 1)));
    check(cudaMemset(data_, 0, bytes));
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Owns a handle or descriptor of cuDNN.
template <class Native, auto kCreate, auto kDestroy>
class Owned {
 public:
  Owned() { check(kCreate(&native_)); }
  ~Owned() { kDestroy(native_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator Native() const { return native_; }
  Native native() const { return native_; }

 private:
  Native native_ = nullptr;
};
using Handle = Owned<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using Tensor =
    Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using Activation = Owned<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor,
                         cudnnDestroyActivationDescriptor>;

bool is_offered(const std::string& dtype) {
  return dtype == "float32" || dtype == "float16" || dtype == "bfloat16";
}

cudnnDataType_t type_named(const std::string& dtype) {
  return dtype == "float16"    ? CUDNN_DATA_HALF
         : dtype == "bfloat16" ? CUDNN_DATA_BFLOAT16
                               : CUDNN_DATA_FLOAT;
}

cudnnBatchNormOps_t operations_of(const std::string& form) {
  return form == "relu"       ? CUDNN_BATCHNORM_OPS_BN_ACTIVATION
         : form == "add_relu" ? CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION
                              : CUDNN_BATCHNORM_OPS_BN;
}

size_t bytes_of(const NormalizationInputs& inputs) {
  size_t bytes = inputs.dtype == "float32" ? 4 : 2;
  for (const int extent : inputs.extents) bytes *= static_cast<size_t>(extent);
  return bytes;
}

// One number of float32 for each channel.
struct OfChannels {
  explicit OfChannels(size_t channels) : OfChannels(channels, channels * sizeof(float)) {}
  Memory gamma, beta, running_mean, running_variance, mean, inverse_std, ggamma, gbeta;

 private:
  OfChannels(size_t channels, size_t bytes)
      : gamma(bytes),
        beta(bytes),
        running_mean(bytes),
        running_variance(bytes),
        mean(bytes),
        inverse_std(bytes),
        ggamma(bytes),
        gbeta(bytes) {
    const std::vector<float> ones(channels, 1);
    check(cudaMemcpy(gamma.get(), ones.data(), bytes, cudaMemcpyHostToDevice));
  }
};

}  // namespace

struct CudnnNormalization::State {
  explicit State(const NormalizationInputs& given)
      : inputs(given),
        operations(operations_of(given.form)),
        y(bytes_of(given)),
        gx(bytes_of(given)),
        gresidual(bytes_of(given)),
        of_channels(static_cast<size_t>(given.extents[1])) {
    const auto [n, c, h, w] = given.extents;
    check(cudnnSetTensor4dDescriptor(images,
                                     given.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                     type_named(given.dtype), n, c, h, w));
    check(cudnnDeriveBNTensorDescriptor(channels, images, CUDNN_BATCHNORM_SPATIAL));
    check(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
    if (!is_offered(given.dtype)) return;
    for (const auto mode : {CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_SPATIAL_PERSISTENT})
      if (provide_memory(mode) && runs(mode)) modes.push_back(mode);
  }

  cudnnActivationDescriptor_t activation() const {
    return operations == CUDNN_BATCHNORM_OPS_BN ? nullptr : relu.native();
  }
  cudnnTensorDescriptor_t residual() const {
    return operations == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION ? images.native() : nullptr;
  }

  // False where cuDNN declines the mode.
  bool provide_memory(cudnnBatchNormMode_t mode) {
    size_t forward_bytes = 0, backward_bytes = 0, kept_bytes = 0;
    if (cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
            handle, mode, operations, images, residual(), images, channels, activation(),
            &forward_bytes) != CUDNN_STATUS_SUCCESS ||
        cudnnGetBatchNormalizationBackwardExWorkspaceSize(
            handle, mode, operations, images, images, images, residual(), images, channels,
            activation(), &backward_bytes) != CUDNN_STATUS_SUCCESS ||
        cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
            handle, mode, operations, activation(), images, &kept_bytes) != CUDNN_STATUS_SUCCESS)
      return false;
    workspace_bytes = std::max({workspace_bytes, forward_bytes, backward_bytes});
    reserve_bytes = std::max(reserve_bytes, kept_bytes);
    workspace = std::make_unique<Memory>(workspace_bytes);
    reserve = std::make_unique<Memory>(reserve_bytes);
    return true;
  }

  // False where cuDNN declines only now.
  bool runs(cudnnBatchNormMode_t mode) {
    for (const cudnnStatus_t status : {forward(mode), backward(mode)}) {
      const int category = CUDNN_STATUS_CATEGORY(status);
      if (category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM)
        return false;
      check(status);
    }
    check(cudaDeviceSynchronize());
    return true;
  }

  cudnnStatus_t forward(cudnnBatchNormMode_t mode) const {
    return cudnnBatchNormalizationForwardTrainingEx(
        handle, mode, operations, &kOne, &kZero, images, inputs.x, residual(), inputs.residual,
        images, y.get(), channels, of_channels.gamma.get(), of_channels.beta.get(), kDecay,
        of_channels.running_mean.get(), of_channels.running_variance.get(), kEps,
        of_channels.mean.get(), of_channels.inverse_std.get(), activation(), workspace->get(),
        workspace_bytes, reserve->get(), reserve_bytes);
  }

  cudnnStatus_t backward(cudnnBatchNormMode_t mode) const {
    return cudnnBatchNormalizationBackwardEx(
        handle, mode, operations, &kOne, &kZero, &kOne, &kZero, images, inputs.x, images, y.get(),
        images, inputs.gy, residual(), gresidual.get(), images, gx.get(), channels,
        of_channels.gamma.get(), of_channels.beta.get(), of_channels.ggamma.get(),
        of_channels.gbeta.get(), kEps, of_channels.mean.get(), of_channels.inverse_std.get(),
        activation(), workspace->get(), workspace_bytes, reserve->get(), reserve_bytes);
  }

  NormalizationInputs inputs;
  cudnnBatchNormOps_t operations;
  Handle handle;
  Tensor images, channels;
  Activation relu;
  Memory y, gx, gresidual;
  OfChannels of_channels;
  size_t workspace_bytes = 0, reserve_bytes = 0;
  std::unique_ptr<Memory> workspace, reserve;
  std::vector<cudnnBatchNormMode_t> modes;
};

CudnnNormalization::CudnnNormalization(const NormalizationInputs& inputs)
    : state_(new State(inputs)) {}

CudnnNormalization::~CudnnNormalization() = default;

int CudnnNormalization::modes() const { return static_cast<int>(state_->modes.size()); }

void CudnnNormalization::forward(int mode, void* stream) {
  check(cudnnSetStream(state_->handle, static_cast<cudaStream_t>(stream)));
  check(state_->forward(state_->modes[static_cast<size_t>(mode)]));
}

void CudnnNormalization::backward(int mode, void* stream) {
  check(cudnnSetStream(state_->handle, static_cast<cudaStream_t>(stream)));
  check(state_->backward(state_->modes[static_cast<size_t>(mode)]));
}

}  // namespace bench::raw
