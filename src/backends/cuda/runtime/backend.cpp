// The cuda Backend: passes the core's calls to the parts of the plug-in.
#include "backends/cuda/runtime/backend.h"

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/copy_bytes.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/runtime/ipc.h"
#include "backends/cuda/runtime/memory_pools.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/core/backend.h"
#include "catena/core/trace.h"
#include "catena/core/wait_hook.h"

namespace catena::gpu {
namespace {

cudaStream_t native(const StreamState* state) { return static_cast<cudaStream_t>(state->native); }
cudaEvent_t native(const EventState* state) { return static_cast<cudaEvent_t>(state->native); }

// Returns true if the work is done and false if not yet; throws for an error.
bool answer(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return true;
  if (error != cudaErrorNotReady) fail_cuda(error, call);
  cudaGetLastError();
  return false;
}

// A wait of the host. It is announced to the wait hook, which may know that the wait cannot end
// (see wait_hook.h).
template <class Wait>
void wait_on_host(int index, Wait wait) {
  const tracing::Range range("wait for the GPU", tracing::Category::kWait);
  const WaitHook hook = wait_hook().load(std::memory_order_acquire);
  if (hook) hook(cuda_device(index), WaitPhase::kBegin);
  CATENA_CUDA_CHECK(wait());
  if (hook) hook(cuda_device(index), WaitPhase::kDone);
  drop_called_functions();
}

class CudaBackend final : public Backend {
 public:
  int device_count() override { return gpu::device_count(); }

  std::string describe(int index) override {
    if (gpu::device_count() == 0) return no_device_reason();
    const DeviceInfo& info = device_info(index);
    const double gib = double(info.total_memory >> 20) / 1024;
    return message(info.model, ", ", double(int64_t(gib * 10)) / 10, " GiB, compute capability ",
                   info.major, ".", info.minor);
  }

  void synchronize(int index) override {
    refuse_during_capture("synchronize(device)");
    CATENA_CHECK(Error, !is_captured(index),
                 "synchronize: another thread captures a CUDA graph on cuda:", index,
                 ", and CUDA cannot wait for a device meanwhile; wait for a stream instead");
    use_device(index);
    wait_on_host(index, [] { return cudaDeviceSynchronize(); });
    forget_user_kernels(index);
  }

  void make_current(int index) override { use_device(index); }

  DeviceProperties properties(int index) override {
    const DeviceInfo& info = device_info(index);
    return {info.model, message(info.major, info.minor), info.multiprocessors, info.total_memory};
  }
  MemoryInfo memory_info(int index) override {
    RelaxedCapture relaxed;
    UseDevice use(index);
    MemoryInfo info;
    CATENA_CUDA_CHECK(cudaMemGetInfo(&info.free, &info.total));
    return info;
  }
  bool can_access_peer(int index, int peer) override { return can_reach_peer(index, peer); }
  int owner_of(const void* memory) override {
    RelaxedCapture relaxed;
    cudaPointerAttributes attributes;
    const cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
    cudaGetLastError();
    const bool device = error == cudaSuccess && (attributes.type == cudaMemoryTypeDevice ||
                                                 attributes.type == cudaMemoryTypeManaged);
    return device ? attributes.device : -1;
  }

  StoragePtr allocate(int index, size_t bytes) override { return allocate_device(index, bytes); }
  StoragePtr allocate_pinned(Device cpu_device, size_t bytes) override {
    return gpu::allocate_pinned(cpu_device, bytes);
  }
  StoragePtr allocate_unpooled(int index, size_t bytes) override {
    refuse_during_capture("allocate_unpooled");
    return gpu::allocate_unpooled(index, bytes);
  }
  IpcMemory export_memory(const Storage& storage, const void* memory) override {
    return gpu::export_memory(storage, memory);
  }
  StoragePtr import_memory(int index, const IpcMemory& memory, size_t bytes) override {
    return gpu::import_memory(index, memory, bytes);
  }
  void record_use(const Storage& storage, const Stream& stream) override {
    gpu::record_use(storage, stream);
  }
  PoolStatistics statistics(int index) override { return device_pool(index).statistics(); }
  PoolStatistics pinned_statistics() override { return pinned_pool().statistics(); }
  void free_all_blocks(int index) override {
    refuse_during_capture("free_all_blocks");
    device_pool(index).free_all_blocks();
  }
  void free_all_pinned_blocks() override {
    refuse_during_capture("free_all_pinned_blocks");
    pinned_pool().free_all_blocks();
  }
  void set_limit(int index, size_t bytes) override { device_pool(index).set_limit(bytes); }
  void reset_peak(int index) override { device_pool(index).reset_peak(); }
  bool count_outside(int index, size_t bytes) override {
    return device_pool(index).count_outside(bytes);
  }
  void discount_outside(int index, size_t bytes) override {
    device_pool(index).discount_outside(bytes);
  }

  StreamState* default_stream(int index) override { return gpu::default_stream(index); }
  StreamState* create_stream(int index, int priority) override {
    return gpu::create_stream(index, priority);
  }
  void destroy_stream(StreamState* state) override { gpu::destroy_stream(state); }
  void synchronize_stream(StreamState* state) override {
    refuse_during_capture("Stream::synchronize");
    use_device(state->device.index());
    wait_on_host(state->device.index(), [&] { return cudaStreamSynchronize(native(state)); });
    forget_user_kernels(native(state));
  }
  bool query_stream(StreamState* state) override {
    refuse_during_capture("Stream::query");
    use_device(state->device.index());  // the legacy stream belongs to the current device
    return answer(cudaStreamQuery(native(state)), "cudaStreamQuery");
  }
  void stream_wait_event(StreamState* state, EventState* event) override {
    // Events of a CPU are always complete.
    if (event->device.is_cpu() || !is_recorded(*event)) return;
    use_device(state->device.index());
    CATENA_CUDA_CHECK(cudaStreamWaitEvent(native(state), native(event), 0));
  }

  StreamState* create_blocking_stream(int index, int priority) override {
    return gpu::create_stream(index, priority, true);
  }
  void add_callback(StreamState* state, Stream::Callback callback) override {
    refuse_during_capture("Stream::add_callback");
    gpu::add_callback(state, std::move(callback));
  }
  void launch_host_func(StreamState* state, std::function<void()> function) override {
    gpu::launch_host_func(state, std::move(function));
  }

  EventState* create_event(int index, bool timing) override {
    return gpu::create_event(index, EventOptions{timing, false, false});
  }
  EventState* create_event_with(int index, const EventOptions& options) override {
    return gpu::create_event(index, options);
  }
  IpcEvent export_event(EventState* state) override { return gpu::export_event(state); }
  EventState* import_event(int index, const IpcEvent& event) override {
    return gpu::import_event(index, event);
  }
  void destroy_event(EventState* state) override { gpu::destroy_event(state); }
  void record_event(EventState* state, StreamState* stream) override {
    CATENA_CHECK(DeviceError, state->device == stream->device,
                 "Event::record: the event belongs to ", state->device, ", the stream to ",
                 stream->device);
    gpu::record_event(*state, *stream);
  }
  void synchronize_event(EventState* state) override {
    refuse_during_capture("Event::synchronize");
    if (!is_recorded(*state)) return;
    wait_on_host(state->device.index(), [&] { return cudaEventSynchronize(native(state)); });
  }
  bool query_event(EventState* state) override {
    refuse_during_capture("Event::query");
    return !is_recorded(*state) || answer(cudaEventQuery(native(state)), "cudaEventQuery");
  }
  double elapsed_ms(EventState* start, EventState* stop) override {
    float result = 0;
    CATENA_CUDA_CHECK(cudaEventElapsedTime(&result, native(start), native(stop)));
    return result;
  }

  void copy_bytes(void* dst, Device dst_device, const void* src, Device src_device, size_t bytes,
                  const Stream& stream) override {
    gpu::copy_bytes(dst, dst_device, src, src_device, bytes, stream);
  }

  void fill_bytes(void* dst, int value, size_t bytes, const Stream& stream) override {
    use_device(stream.device().index());
    CATENA_CUDA_CHECK(cudaMemsetAsync(dst, value, bytes, native(stream.state())));
  }

  void begin_capture(int index, const Stream& stream) override {
    gpu::begin_capture(index, stream);
  }
  GraphState* end_capture(const Stream& stream) override { return gpu::end_capture(stream); }
  void abort_capture(const Stream& stream) noexcept override { gpu::abort_capture(stream); }
  void order_launch(GraphState* graph, const Stream& stream) override {
    gpu::order_launch(*graph, stream);
  }
  void launch_graph(GraphState* graph, const Stream& stream) override {
    gpu::launch_graph(*graph, stream);
  }
  void destroy_graph(GraphState* graph) noexcept override { gpu::destroy_graph(graph); }
  bool is_capturing(const Stream& stream) override { return gpu::is_capturing(stream); }

  void range_push(const char* name) override { nvtxRangePushA(name); }
  void range_pop() override { nvtxRangePop(); }
};

}  // namespace

void register_cuda_backend() {
  static CudaBackend* instance = new CudaBackend;  // lives as long as the process
  register_backend(DeviceType::kCuda, instance);
}

}  // namespace catena::gpu
