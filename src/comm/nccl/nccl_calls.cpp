#include "nccl_calls.h"

#include <utility>

#include "core/environment.h"

namespace catena::comm::nccl {

void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // not an error of the next call
  fail<DeviceError>("nccl: ", call, " failed: ", cudaGetErrorName(code), ": ",
                    cudaGetErrorString(code));
}

bool records_graph(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CATENA_NCCL_CUDA(cudaStreamIsCapturing(native(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

bool copies_directly() {
  return switch_from_environment("CATENA_P2P", true) &&
         !switch_from_environment("NCCL_P2P_DISABLE", false);
}

bool adds(const Call& call) {
  const Reduction reduction = call.effective_reduction();
  return reduction == Reduction::kSum || reduction == Reduction::kMean ||
         reduction == Reduction::kWeighted;
}

float weight_of(const Call& call) {
  return call.reduction == Reduction::kWeighted ? static_cast<float>(call.weight) : 1.f;
}

float divisor_of(const Call& call, int ranks) {
  return call.reduction == Reduction::kMean ? static_cast<float>(ranks) : 1.f;
}

std::string nccl_version() {
  int number = 0;
  if (ncclGetVersion(&number) != ncclSuccess) return "of unknown version";
  return message(number / 10000, ".", number % 10000 / 100, ".", number % 100);
}

std::string nccl_text(ncclResult_t code, const char* call, ncclComm_t comm) {
  std::string text = message(call, ": ", ncclGetErrorString(code));
  const char* last = comm ? ncclGetLastError(comm) : nullptr;
  if (last && *last) text += message(" (NCCL's last words: ", last, ")");
  return text + "; NCCL " + nccl_version() + ", set NCCL_DEBUG=WARN for more";
}

ncclDataType_t nccl_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
    case Dtype::kUInt8: return ncclUint8;
    case Dtype::kInt8: return ncclInt8;
    case Dtype::kInt32: return ncclInt32;
    case Dtype::kUInt32: return ncclUint32;
    case Dtype::kInt64: return ncclInt64;
    case Dtype::kUInt64: return ncclUint64;
    case Dtype::kInt16:  // only the size matters to copies
    case Dtype::kUInt16:
    case Dtype::kFloat16: return ncclFloat16;
    case Dtype::kBFloat16: return ncclBfloat16;
    case Dtype::kFloat32: return ncclFloat32;
    case Dtype::kFloat64: return ncclFloat64;
    default: fail<DtypeError>("nccl: no NCCL type for ", dtype);
  }
}

namespace {

ncclRedOp_t built_in(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMean: return ncclAvg;
    case Reduction::kMin: return ncclMin;
    case Reduction::kMax: return ncclMax;
    case Reduction::kProduct: return ncclProd;
    default: return ncclSum;
  }
}

}  // namespace

ScopedRedOp::ScopedRedOp(const Call& call, const ncclComm_t& comm) {
  if (call.reduction != Reduction::kWeighted) {
    op_ = built_in(call.effective_reduction());
    return;
  }
  // The factor has the data's type; NCCL reads it before it returns.
  visit_float("nccl", call.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T weight(static_cast<compute_t<T>>(call.weight));
    const ncclResult_t code = ncclRedOpCreatePreMulSum(&op_, &weight, nccl_dtype(call.dtype),
                                                       ncclScalarHostImmediate, comm);
    if (code != ncclSuccess) throw CommError(nccl_text(code, "ncclRedOpCreatePreMulSum", comm));
  });
  owner_ = &comm;
}

ScopedRedOp::~ScopedRedOp() {
  if (owner_ && *owner_) ncclRedOpDestroy(op_, *owner_);
}

ScopedRedOp::ScopedRedOp(ScopedRedOp&& other) noexcept
    : op_(other.op_), owner_(std::exchange(other.owner_, nullptr)) {}

ScopedRedOp& ScopedRedOp::operator=(ScopedRedOp&& other) noexcept {
  std::swap(op_, other.op_);
  std::swap(owner_, other.owner_);
  return *this;
}

}  // namespace catena::comm::nccl
