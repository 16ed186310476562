#include "backends/cuda/runtime/streams.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/memory_pools.h"

namespace catena::gpu {
namespace {

// A function of the user that a stream calls on the host.
struct HostCall {
  Stream stream;  // for the callback, which names it
  Stream::Callback callback;
  std::function<void()> function;
};

// Never destroyed: arrays and streams may outlive static objects.
struct State {
  std::atomic<StreamState*> defaults[kMaxDevices]{};
  std::mutex mutex;
  std::vector<cudaEvent_t> events[kMaxDevices];
  std::vector<std::unique_ptr<HostCall>> called;  // see drop_called_functions
  std::atomic<bool> any_called{false};
};
State& state() {
  static State* instance = new State;
  return *instance;
}

StreamState* make_stream(int index, int priority, bool blocking) {
  device_info(index);
  RelaxedCapture relaxed;
  UseDevice use(index);
  int least = 0, greatest = 0;
  CATENA_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t native;
  CATENA_CUDA_CHECK(
      cudaStreamCreateWithPriority(&native, blocking ? cudaStreamDefault : cudaStreamNonBlocking,
                                   std::clamp(priority, greatest, least)));
  auto* made = new StreamState;
  made->device = cuda_device(index);
  made->native = native;
  return made;
}

struct GpuEvent : EventState {
  bool plain = false;  // kept for reuse when it is released
  // A reused event of CUDA still stands for the work that its last owner recorded, which may even
  // be a capture.
  bool recorded = false;
};

EventState* make_event(int index, cudaEvent_t native, bool timing, bool plain) {
  auto* made = new GpuEvent;
  made->device = cuda_device(index);
  made->native = native;
  made->timing = timing;
  made->plain = plain;
  return made;
}

// What follows is called by a thread of the driver, which may not call CUDA.

// What the function holds, arrays and streams among it, is released by drop_called_functions.
void keep_called(std::unique_ptr<HostCall> call) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.called.push_back(std::move(call));
  s.any_called.store(true, std::memory_order_release);
}
void CUDART_CB run_callback(cudaStream_t, cudaError_t error, void* data) {
  std::unique_ptr<HostCall> call(static_cast<HostCall*>(data));
  call->callback(call->stream, error == cudaSuccess ? std::string() : describe_cuda_error(error));
  keep_called(std::move(call));
}
void CUDART_CB run_host_function(void* data) {
  std::unique_ptr<HostCall> call(static_cast<HostCall*>(data));
  call->function();
  keep_called(std::move(call));
}
// In a graph this runs with every launch.
void CUDART_CB run_captured_function(void* data) { static_cast<HostCall*>(data)->function(); }

}  // namespace

void drop_called_functions() {
  State& s = state();
  if (!s.any_called.load(std::memory_order_acquire)) [[likely]]
    return;
  std::vector<std::unique_ptr<HostCall>> called;  // outlives the lock, which streams' ends take
  const std::lock_guard lock(s.mutex);
  s.any_called.store(false, std::memory_order_relaxed);
  called.swap(s.called);
}

cudaStream_t launch_stream(Device device) {
  use_device(device.index());
  return static_cast<cudaStream_t>(current_native_stream(device));
}

StreamState* default_stream(int index) {
  State& s = state();
  if (StreamState* found = s.defaults[index].load(std::memory_order_acquire)) return found;
  std::lock_guard lock(s.mutex);
  if (StreamState* found = s.defaults[index].load(std::memory_order_acquire)) return found;
  StreamState* made = make_stream(index, 0, false);
  made->is_default = true;
  made->retain();  // lives as long as the process
  s.defaults[index].store(made, std::memory_order_release);
  return made;
}

bool is_foreign(const StreamState& stream) noexcept {
  return stream.is_default && stream.native &&
         &stream != state().defaults[stream.device.index()].load(std::memory_order_acquire);
}

bool is_used(int index) noexcept {
  return state().defaults[index].load(std::memory_order_acquire) != nullptr;
}

StreamState* create_stream(int index, int priority, bool blocking) {
  return make_stream(index, priority, blocking);
}

void destroy_stream(StreamState* stream) noexcept {
  const auto native = static_cast<cudaStream_t>(stream->native);
  if (GraphState* capture = thread_capture(); capture && is_captured(native)) {
    capture->kept_streams.push_back(stream);
    return;
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

EventState* create_event(int index, const EventOptions& options) {
  device_info(index);
  const bool plain = !options.timing && !options.blocking && !options.interprocess;
  if (plain) return make_event(index, take_event(index), false, true);
  unsigned flags = options.timing ? cudaEventDefault : cudaEventDisableTiming;
  if (options.blocking) flags |= cudaEventBlockingSync;
  if (options.interprocess) flags |= cudaEventInterprocess;
  RelaxedCapture relaxed;
  UseDevice use(index);
  cudaEvent_t native;
  CATENA_CUDA_CHECK(cudaEventCreateWithFlags(&native, flags));
  return make_event(index, native, options.timing, false);
}

EventState* adopt_event(int index, cudaEvent_t native) {
  EventState* made = make_event(index, native, false, false);
  static_cast<GpuEvent*>(made)->recorded = true;  // the other process knows
  return made;
}

bool is_recorded(const EventState& event) { return static_cast<const GpuEvent&>(event).recorded; }

void record_event(EventState& event, const StreamState& stream) {
  use_device(event.device.index());
  CATENA_CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(event.native),
                                    static_cast<cudaStream_t>(stream.native)));
  static_cast<GpuEvent&>(event).recorded = true;
}

void destroy_event(EventState* event) noexcept {
  auto* own = static_cast<GpuEvent*>(event);
  const auto native = static_cast<cudaEvent_t>(own->native);
  if (own->plain) {
    return_event(own->device.index(), native);
  } else {
    cudaEventDestroy(native);
    cudaGetLastError();
  }
  delete own;
}

void add_callback(StreamState* state, Stream::Callback callback) {
  drop_called_functions();
  use_device(state->device.index());
  auto call = std::make_unique<HostCall>(HostCall{Stream(state), std::move(callback), {}});
  CATENA_CUDA_CHECK(cudaStreamAddCallback(static_cast<cudaStream_t>(state->native), &run_callback,
                                          call.get(), 0));
  (void)call.release();  // the driver's thread has it now
}

void launch_host_func(StreamState* state, std::function<void()> function) {
  use_device(state->device.index());
  const auto native = static_cast<cudaStream_t>(state->native);
  auto call = std::make_unique<HostCall>(HostCall{{}, {}, std::move(function)});
  if (GraphState* capture = thread_capture(); capture && is_captured(native)) {
    CATENA_CUDA_CHECK(cudaLaunchHostFunc(native, &run_captured_function, call.get()));
    capture->kept_functions.push_back(std::shared_ptr<HostCall>(std::move(call)));
    return;
  }
  if (!thread_capture()) drop_called_functions();
  CATENA_CUDA_CHECK(cudaLaunchHostFunc(native, &run_host_function, call.get()));
  (void)call.release();  // the driver's thread has it now
}

}  // namespace catena::gpu
