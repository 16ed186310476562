// See call_order.h.
#include "call_order.h"

namespace catena::comm::nccl {

namespace {

// Of each stream: 0 while nothing is captured.
unsigned long long capture_of(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  CATENA_NCCL_CUDA(cudaStreamGetCaptureInfo(native(stream), &status, &id));
  return status == cudaStreamCaptureStatusNone ? 0 : id;
}

}  // namespace

// Work that is captured waits for what the same capture holds, other work for what is queued.
void CallOrder::enter(const Stream& stream) {
  const unsigned long long capture = capture_of(stream);
  captured_ |= capture != 0;
  if (last_.defined() && last_ != stream && capture_of(last_) == capture) stream.wait(last_);
  last_ = stream;
}

}  // namespace catena::comm::nccl
