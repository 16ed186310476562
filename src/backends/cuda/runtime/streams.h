// Streams and events of the GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include "catena/core/stream.h"

namespace catena::gpu {

inline cudaStream_t native_stream(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}
// The calling thread's current stream of a GPU. Makes the GPU the thread's current device.
cudaStream_t launch_stream(Device device);

StreamState* default_stream(int index);
// Whether another library owns the stream and may have destroyed it. CUDA's legacy stream stays.
bool is_foreign(const StreamState& stream) noexcept;
// Whether default_stream() has made one: what has not was not used.
bool is_used(int index) noexcept;
// `blocking`: the stream and the legacy stream wait for each other.
StreamState* create_stream(int index, int priority, bool blocking = false);
// Waits for the stream's work. Its cached memory moves to the device's default stream.
void destroy_stream(StreamState* state) noexcept;

// Events without timing are kept for reuse.
cudaEvent_t take_event(int index);
void return_event(int index, cudaEvent_t event) noexcept;

// An event on which nothing was recorded counts as done.
EventState* create_event(int index, const EventOptions& options);
// Wraps an event from another process.
EventState* adopt_event(int index, cudaEvent_t native);
void destroy_event(EventState* state) noexcept;
bool is_recorded(const EventState& event);
void record_event(EventState& event, const StreamState& stream);

void add_callback(StreamState* state, Stream::Callback callback);
void launch_host_func(StreamState* state, std::function<void()> function);
// Releases what functions held that streams have called: threads of the driver, which call them,
// may not. Not while the thread captures a graph.
void drop_called_functions();

}  // namespace catena::gpu
