// Streams and events of the GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include "catena/core/stream.h"

namespace catena::gpu {

inline cudaStream_t native_stream(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}
// The calling thread's current stream of a GPU, which becomes the thread's current device.
cudaStream_t launch_stream(Device device);

StreamState* default_stream(int index);
StreamState* create_stream(int index, int priority);
// Waits for the stream's work; its cached memory goes to the device's default stream.
void destroy_stream(StreamState* state) noexcept;

// Events without timing are kept for reuse.
cudaEvent_t take_event(int index);
void return_event(int index, cudaEvent_t event) noexcept;

EventState* create_event(int index, bool timing);
void destroy_event(EventState* state) noexcept;

}  // namespace catena::gpu
