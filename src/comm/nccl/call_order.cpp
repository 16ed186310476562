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

// Work that is captured waits for what the same capture holds, other work for what was queued.
void CallOrder::enter(const Stream& stream) {
  const unsigned long long capture = capture_of(stream);
  captured_ |= capture != 0;
  Last& last = last_of(capture);
  if (last.stream.defined() && last.stream != stream && last.capture == capture) {
    records_ends_ = true;
    if (last.end)
      stream.wait(last.end);
    else if (capture_of(last.stream) == capture)
      stream.wait(last.stream);
  }
  last = {stream, {}, capture};
}

void CallOrder::leave(const Stream& stream) {
  if (records_ends_) last_of(capture_of(stream)).end = stream.record();
}

}  // namespace catena::comm::nccl
