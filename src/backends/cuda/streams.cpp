#include "backends/cuda/streams.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "backends/cuda/capture.h"
#include "backends/cuda/cuda_check.h"
#include "backends/cuda/device.h"
#include "backends/cuda/memory_pools.h"

namespace catena::gpu {
namespace {

// Never destroyed: arrays and streams may outlive static objects.
struct State {
  std::atomic<StreamState*> defaults[kMaxDevices]{};
  std::mutex mutex;
  std::vector<cudaEvent_t> events[kMaxDevices];
};
State& state() {
  static State* instance = new State;
  return *instance;
}

StreamState* make_stream(int index, int priority) {
  device_info(index);
  RelaxedCapture relaxed;
  UseDevice use(index);
  int least = 0, greatest = 0;
  CATENA_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t native;
  CATENA_CUDA_CHECK(cudaStreamCreateWithPriority(&native, cudaStreamNonBlocking,
                                                 std::clamp(priority, greatest, least)));
  auto* made = new StreamState;
  made->device = cuda_device(index);
  made->native = native;
  return made;
}

// Events with timing are marked by this flag in an EventState of our own.
struct GpuEvent : EventState {
  bool timing = false;
};

}  // namespace

cudaStream_t launch_stream(Device device) {
  use_device(device.index());
  return static_cast<cudaStream_t>(current_native_stream(device));
}

StreamState* default_stream(int index) {
  State& s = state();
  if (StreamState* found = s.defaults[index].load(std::memory_order_acquire)) return found;
  std::lock_guard lock(s.mutex);
  if (StreamState* found = s.defaults[index].load(std::memory_order_acquire)) return found;
  StreamState* made = make_stream(index, 0);
  made->is_default = true;
  made->retain();  // lives as long as the process
  s.defaults[index].store(made, std::memory_order_release);
  return made;
}

StreamState* create_stream(int index, int priority) { return make_stream(index, priority); }

void destroy_stream(StreamState* stream) noexcept {
  const auto native = static_cast<cudaStream_t>(stream->native);
  if (GraphState* capture = thread_capture()) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(native, &status);
    if (status != cudaStreamCaptureStatusNone) {
      capture->kept_streams.push_back(stream);
      return;
    }
  }
  RelaxedCapture relaxed;
  const int index = stream->device.index();
  cudaStreamSynchronize(native);
  device_pool(index).retire_stream(stream);
  cudaStreamDestroy(native);
  cudaGetLastError();
  delete stream;
}

cudaEvent_t take_event(int index) {
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    if (!s.events[index].empty()) {
      cudaEvent_t event = s.events[index].back();
      s.events[index].pop_back();
      return event;
    }
  }
  RelaxedCapture relaxed;
  UseDevice use(index);
  cudaEvent_t event;
  CATENA_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

void return_event(int index, cudaEvent_t event) noexcept {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.events[index].push_back(event);
}

EventState* create_event(int index, bool timing) {
  cudaEvent_t native;
  if (timing) {
    RelaxedCapture relaxed;
    UseDevice use(index);
    CATENA_CUDA_CHECK(cudaEventCreate(&native));
  } else {
    native = take_event(index);
  }
  auto* made = new GpuEvent;
  made->device = cuda_device(index);
  made->native = native;
  made->timing = timing;
  return made;
}

void destroy_event(EventState* event) noexcept {
  auto* own = static_cast<GpuEvent*>(event);
  const auto native = static_cast<cudaEvent_t>(own->native);
  if (own->timing) {
    cudaEventDestroy(native);
    cudaGetLastError();
  } else {
    return_event(own->device.index(), native);
  }
  delete own;
}

}  // namespace catena::gpu
