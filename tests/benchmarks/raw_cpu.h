// What the host can do without the framework: loops over memory in the form of the STREAM benchmark
// (J. D. McCalpin, Memory bandwidth and machine balance in current high performance computers,
// 1995), the bare matrix products of a network's layers by another library, and the bare loop of an
// update rule, with the same threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench::raw {

void copy(float* to, const float* from, int64_t n);  // memcpy by each thread on its part
void add(float* c, const float* a, const float* b, int64_t n);
double sum(const float* a, int64_t n);

// A new block of n floats, c = a + b, and the block freed; returns one element of it.
float allocate_and_add(const float* a, const float* b, int64_t n);

// The matrix products of one training step of a stack of linear layers (for each layer y = x W^T
// and dW = dy^T x, and for all but the first dx = dy W), then the update of all parameters as one
// loop.
class BareStep {
 public:
  BareStep(const std::vector<int64_t>& widths, int64_t batch, const std::string& rule);
  void products();
  void update();

 private:
  std::vector<int64_t> widths_;
  int64_t batch_;
  bool adam_;
  std::vector<std::vector<float>> activations_;
  std::vector<size_t> weight_at_;  // where each layer's weights start
  std::vector<float> parameters_, gradients_, m_, v_;
};

}  // namespace bench::raw
