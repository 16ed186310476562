#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "raw_cuda.h"

namespace bench::raw {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
}

__global__ void empty_kernel() {}

// Numbers in [-scale / 2, scale / 2): products of zeros draw less power and run at higher clocks.
__global__ void fill_kernel(float* data, size_t n, float scale) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += step) {
    const uint32_t bits = uint32_t(i) * 2654435761u;
    data[i] = (float(bits >> 8) * 0x1p-24f - 0.5f) * scale;
  }
}

cudaStream_t native(void* stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

void copy(void* destination, const void* source, size_t bytes, void* stream) {
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, native(stream)),
        "cudaMemcpyAsync");
}

void launch_empty_kernel(void* stream) { empty_kernel<<<1, 128, 0, native(stream)>>>(); }

int captured_launches(void* stream) {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
  check(
      cudaStreamGetCaptureInfo(native(stream), &status, nullptr, &graph, nullptr, nullptr, nullptr),
      "cudaStreamGetCaptureInfo");
#else
  check(cudaStreamGetCaptureInfo_v2(native(stream), &status, nullptr, &graph, nullptr, nullptr),
        "cudaStreamGetCaptureInfo");
#endif
  if (status != cudaStreamCaptureStatusActive)
    throw std::runtime_error("captured_launches: the stream captures nothing");
  size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
  int launches = 0;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    launches += type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
                type == cudaGraphNodeTypeMemset;
  }
  return launches;
}

EmptyGraph::EmptyGraph(int kernels) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < kernels; ++i) launch_empty_kernel(stream);
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  executable_ = executable;
}

EmptyGraph::~EmptyGraph() { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_)); }

void EmptyGraph::launch(void* stream) const {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), native(stream)),
        "cudaGraphLaunch");
}

// cuBLAS is column-major: a row-major (rows, columns) matrix is its transpose there, so y = x W^T
// is computed as y^T = W x^T.
struct LayerProducts::State {
  std::vector<int64_t> widths;
  int64_t batch;
  cublasHandle_t handle = nullptr;
  float* activations = nullptr;  // (batch, widest) matrices: in, out, gradient of in
  float* weights = nullptr;  // one (widest, widest) matrix for each layer, and as many gradients
  int64_t widest = 0;

  void product(cublasOperation_t a_op, cublasOperation_t b_op, int64_t m, int64_t n, int64_t k,
               const float* a, int64_t lda, const float* b, int64_t ldb, float* c) const {
    const float one = 1, zero = 0;
    check(cublasSgemm(handle, a_op, b_op, int(m), int(n), int(k), &one, a, int(lda), b, int(ldb),
                      &zero, c, int(m)),
          "cublasSgemm");
  }
};

LayerProducts::LayerProducts(const std::vector<int64_t>& widths, int64_t batch, bool tf32)
    : state_(new State{widths, batch}) {
  State& s = *state_;
  for (int64_t width : widths) s.widest = width > s.widest ? width : s.widest;
  const size_t layers = widths.size() - 1, matrix = size_t(s.widest * s.widest);
  check(cublasCreate(&s.handle), "cublasCreate");
  check(cublasSetMathMode(s.handle, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_PEDANTIC_MATH),
        "cublasSetMathMode");
  check(cudaMalloc(&s.activations, 3 * size_t(batch * s.widest) * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&s.weights, 2 * layers * matrix * sizeof(float)), "cudaMalloc");
  const auto fill = [](float* data, size_t n, float scale) {
    fill_kernel<<<1024, 256>>>(data, n, scale);
    check(cudaGetLastError(), "fill_kernel");
  };
  fill(s.activations, 3 * size_t(batch * s.widest), 1.0f);
  fill(s.weights, 2 * layers * matrix, 1.0f / std::sqrt(float(s.widest)));
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

LayerProducts::~LayerProducts() {
  cublasDestroy(state_->handle);
  cudaFree(state_->activations);
  cudaFree(state_->weights);
}

int LayerProducts::count() const { return 3 * int(state_->widths.size() - 1) - 1; }

void LayerProducts::run(void* stream) const {
  const State& s = *state_;
  check(cublasSetStream(s.handle, native(stream)), "cublasSetStream");
  const int64_t layers = int64_t(s.widths.size()) - 1, matrix = s.widest * s.widest, n = s.batch;
  float* in = s.activations;
  float* out = in + n * s.widest;
  float* in_gradient = out + n * s.widest;
  for (int64_t l = 0; l < layers; ++l) {
    const int64_t i = s.widths[l], o = s.widths[l + 1];
    s.product(CUBLAS_OP_T, CUBLAS_OP_N, o, n, i, s.weights + l * matrix, i, in, i, out);
  }
  for (int64_t l = layers - 1; l >= 0; --l) {
    const int64_t i = s.widths[l], o = s.widths[l + 1];
    s.product(CUBLAS_OP_N, CUBLAS_OP_T, i, o, n, in, i, out, o, s.weights + (layers + l) * matrix);
    if (l > 0)
      s.product(CUBLAS_OP_N, CUBLAS_OP_N, i, n, o, s.weights + l * matrix, i, out, o, in_gradient);
  }
}

}  // namespace bench::raw
