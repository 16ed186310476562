// The machine's own limits on a GPU, called without the framework: copies, empty launches, and the
// products of a network's layers by cuBLAS. Everything is queued on a stream given as its native
// handle, with the device already current (Backend::make_current). Errors of CUDA are exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bench::raw {

void copy(void* destination, const void* source, size_t bytes, void* stream);
void launch_empty_kernel(void* stream);
// Kernels, copies and fills recorded so far by the capture that the stream takes part in.
int captured_launches(void* stream);

// A CUDA graph of n empty kernels, one after the other.
class EmptyGraph {
 public:
  explicit EmptyGraph(int kernels);
  ~EmptyGraph();
  EmptyGraph(const EmptyGraph&) = delete;
  EmptyGraph& operator=(const EmptyGraph&) = delete;
  void launch(void* stream) const;

 private:
  void* executable_ = nullptr;
};

// The matrix products of one training step of a stack of linear layers: for each layer y = x W^T
// and dW = dy^T x, and for all but the first dx = dy W. widths: input, then output of each layer.
class LayerProducts {
 public:
  LayerProducts(const std::vector<int64_t>& widths, int64_t batch, bool tf32);
  ~LayerProducts();
  LayerProducts(const LayerProducts&) = delete;
  LayerProducts& operator=(const LayerProducts&) = delete;
  int count() const;
  void run(void* stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench::raw
