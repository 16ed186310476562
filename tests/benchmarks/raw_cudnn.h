// Batch normalization by cuDNN, called without the framework. Errors are exceptions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace bench::raw {

// What a training step of batch normalization reads, on the device that is current: images of
// (n, c, h, w), dense, with the channels last in memory or not.
struct NormalizationInputs {
  std::array<int, 4> extents;
  std::string dtype;  // float32, float16 or bfloat16; cuDNN is not asked for others
  bool channels_last;
  std::string form;  // plain, relu or add_relu
  const void *x, *residual, *gy;
};

// The step in each mode that cuDNN offers for it, relu and residual fused. Results and workspace
// belong to the object.
class CudnnNormalization {
 public:
  explicit CudnnNormalization(const NormalizationInputs& inputs);
  ~CudnnNormalization();
  CudnnNormalization(const CudnnNormalization&) = delete;
  CudnnNormalization& operator=(const CudnnNormalization&) = delete;
  int modes() const;  // 0 where cuDNN declines
  void forward(int mode, void* stream);
  void backward(int mode, void* stream);  // after forward in the same mode

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench::raw
