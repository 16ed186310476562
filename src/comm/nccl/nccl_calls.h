// NCCL's and CUDA's errors, dtypes and reductions in catena's terms.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "catena/comm/transport.h"
#include "catena/core/backend.h"

namespace catena::comm::nccl {

// Throws DeviceError with CUDA's text.
void check_cuda(cudaError_t code, const char* call);
#define CATENA_NCCL_CUDA(call) ::catena::comm::nccl::check_cuda(call, #call)

// Makes a GPU the current one of CUDA for the calling thread, as every call of an array does. The
// cuda plug-in knows which one that is, so nothing else may change it in a thread that uses arrays.
inline void use_gpu(int device) { backend(DeviceType::kCuda).make_current(device); }

// While it lives, calls of this thread do not disturb the graphs that it or other threads capture.
// For calls that do not concern the captured streams.
class RelaxedMode {
 public:
  RelaxedMode() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedMode() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedMode(const RelaxedMode&) = delete;
  RelaxedMode& operator=(const RelaxedMode&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

inline cudaStream_t native(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}
bool records_graph(const Stream& stream);
// Of one rank's part in a call.
inline int64_t bytes_of(const Call& call) { return call.count * itemsize(call.dtype); }

// Whether GPUs may write each other's memory: not with CATENA_P2P=0 or NCCL_P2P_DISABLE=1.
bool copies_directly();

// Whether a call adds: a sum, a mean or a weighted sum.
bool adds(const Call& call);
// What this rank's elements are multiplied by in such a call, and what the sum is divided by.
float weight_of(const Call& call);
float divisor_of(const Call& call, int ranks);

// "2.28.3": of the library that is loaded.
std::string nccl_version();

// "ncclAllReduce: unhandled cuda error (NCCL's last words: ...)"
std::string nccl_text(ncclResult_t code, const char* call, ncclComm_t comm);

// 16-bit integers have no NCCL type: they are reduced as 32-bit integers, see needs_widening.
ncclDataType_t nccl_dtype(Dtype dtype);
inline bool needs_widening(Dtype dtype) {
  return dtype == Dtype::kInt16 || dtype == Dtype::kUInt16;
}
// The ncclRedOp_t of a call. A weighted sum is created for the call and destroyed with this.
class ScopedRedOp {
 public:
  ScopedRedOp() = default;
  // `comm` is the variable that holds the communicator; it is null once that was aborted.
  ScopedRedOp(const Call& call, const ncclComm_t& comm);
  ~ScopedRedOp();
  ScopedRedOp(ScopedRedOp&& other) noexcept;
  ScopedRedOp& operator=(ScopedRedOp&& other) noexcept;
  ncclRedOp_t get() const { return op_; }

 private:
  ncclRedOp_t op_ = ncclSum;
  const ncclComm_t* owner_ = nullptr;  // null: built in
};

}  // namespace catena::comm::nccl
