#include "backends/cuda/runtime/memory_pools.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/device_users.h"
#include "backends/cuda/runtime/pool_arena.h"
#include "backends/cuda/runtime/streams.h"

namespace catena::gpu {
namespace {

// Events and waits, the same for both kinds of memory.
class CudaMemory : public RawMemory {
 public:
  bool synchronize(StreamState* stream) noexcept override {
    if (!stream) return true;
    const auto native = static_cast<cudaStream_t>(stream->native);
    if (is_captured(native)) return false;
    RelaxedCapture relaxed;
    UseDevice use(stream->device.index());
    if (cudaStreamSynchronize(native) != cudaSuccess) cudaGetLastError();
    return true;
  }
  void* record(const Stream& stream) noexcept override {
    RelaxedCapture relaxed;
    const int index = stream.device().index();
    try {
      UseDevice use(index);
      cudaEvent_t event = take_event(index);
      // A stream that its owner has destroyed cannot be asked for anything.
      if (is_foreign(*stream.state()))
        return new Mark{index, event, record_unless_captured(index, event)};
      if (cudaEventRecord(event, native_stream(stream)) == cudaSuccess)
        return new Mark{index, event, true};
      return_event(index, event);
    } catch (const std::exception&) {
      // The driver is shutting down, and no work runs any more.
    }
    cudaGetLastError();
    return nullptr;
  }
  bool done(void* event) noexcept override {
    RelaxedCapture relaxed;
    auto* mark = static_cast<Mark*>(event);
    if (!mark->is_recorded) {
      mark->is_recorded = record_unless_captured(mark->device, mark->event);
      return false;
    }
    const cudaError_t error = cudaEventQuery(mark->event);
    if (error != cudaSuccess) cudaGetLastError();
    // Any other error means a lost context, and waiting would not help.
    return error != cudaErrorNotReady && error != cudaErrorCapturedEvent;
  }
  bool wait(void* event) noexcept override {
    RelaxedCapture relaxed;
    auto* mark = static_cast<Mark*>(event);
    if (!mark->is_recorded) mark->is_recorded = record_unless_captured(mark->device, mark->event);
    if (!mark->is_recorded) return false;
    if (cudaEventSynchronize(mark->event) != cudaSuccess) cudaGetLastError();
    return true;
  }
  void recycle(void* event) noexcept override {
    auto* mark = static_cast<Mark*>(event);
    return_event(mark->device, mark->event);
    delete mark;
  }
  bool capturing() noexcept override { return thread_capture() != nullptr; }

 private:
  struct Mark {
    int device;
    cudaEvent_t event;
    bool is_recorded;  // not while a graph is captured, where the stream is another library's
  };
};

// Returns null if there is no more memory; throws for any other error.
void* checked(cudaError_t error, void* memory, const char* call) {
  if (error == cudaSuccess) return memory;
  if (error != cudaErrorMemoryAllocation) fail_cuda(error, call);
  cudaGetLastError();
  return nullptr;
}

class DeviceMemory final : public CudaMemory {
 public:
  explicit DeviceMemory(int index) : index_(index) {}
  void* allocate(size_t bytes) override {
    RelaxedCapture relaxed;
    UseDevice use(index_);
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    return checked(error, memory, "cudaMalloc");
  }
  void release(void* memory) noexcept override {
    if (cudaFree(memory) != cudaSuccess) cudaGetLastError();
  }
  size_t free_bytes() noexcept override {
    RelaxedCapture relaxed;
    UseDevice use(index_);
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return free;
  }
  std::string users() noexcept override { return describe_memory(index_); }

 private:
  const int index_;
};

// Blocks of pinned memory belong to no stream. Every use is recorded, and the pool waits for it.
class PinnedMemory final : public CudaMemory {
 public:
  void* allocate(size_t bytes) override {
    RelaxedCapture relaxed;
    void* memory = nullptr;
    const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    return checked(error, memory, "cudaHostAlloc");
  }
  void release(void* memory) noexcept override {
    if (cudaFreeHost(memory) != cudaSuccess) cudaGetLastError();
  }
  size_t free_bytes() noexcept override { return 0; }  // only the host's operating system knows
};

// Never destroyed: arrays may outlive static objects.
struct Pools {
  std::mutex mutex;
  std::atomic<Pool*> devices[kMaxDevices]{};
  std::atomic<Pool*> pinned{nullptr};
};
Pools& pools() {
  static Pools* instance = new Pools;
  return *instance;
}

}  // namespace

namespace {

// The limit set by the environment; 0 for none.
size_t initial_limit(int index) {
  for (const char* name : {"CATENA_GPU_MEMORY_LIMIT", "CUPY_GPU_MEMORY_LIMIT"}) {
    const char* text = std::getenv(name);
    if (text && *text) return parse_memory_limit(text, device_info(index).total_memory);
  }
  return 0;
}

}  // namespace

Pool& device_pool(int index) {
  Pools& p = pools();
  if (Pool* found = p.devices[index].load(std::memory_order_acquire)) [[likely]]
    return *found;
  device_info(index);
  StreamState* home = default_stream(index);
  std::lock_guard lock(p.mutex);
  if (Pool* found = p.devices[index].load(std::memory_order_acquire)) return *found;
  const Device device = cuda_device(index);
  const size_t limit = initial_limit(index);
  auto* made = new Pool(device.name(), device, false, home, std::make_unique<DeviceMemory>(index));
  made->set_limit(limit);
  p.devices[index].store(made, std::memory_order_release);
  return *made;
}

Pool& pinned_pool() {
  Pools& p = pools();
  if (Pool* found = p.pinned.load(std::memory_order_acquire)) [[likely]]
    return *found;
  std::lock_guard lock(p.mutex);
  if (Pool* found = p.pinned.load(std::memory_order_acquire)) return *found;
  auto* made =
      new Pool("pinned host memory", cpu(0), true, nullptr, std::make_unique<PinnedMemory>());
  p.pinned.store(made, std::memory_order_release);
  return *made;
}

StoragePtr allocate_device(int index, size_t bytes) {
  Pool& pool = device_pool(index);
  StreamState* stream = current_stream(cuda_device(index)).state();
  GraphState* capture = thread_capture();
  if (!capture) [[likely]]
    return pool.allocate(bytes, stream);
  CATENA_CHECK(
      DeviceError, capture->device == index, "allocate: memory on cuda:", index,
      " was requested while a CUDA graph is captured on cuda:", capture->device,
      "; a graph records one device, so move the work on the other one out of the captured step");
  return pool.allocate(bytes, stream, capture->memory.get());
}

StoragePtr allocate_unpooled(int index, size_t bytes) {
  device_info(index);
  if (bytes == 0) return borrow(cuda_device(index), nullptr, 0);
  RelaxedCapture relaxed;
  UseDevice use(index);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (checked(error, memory, "cudaMalloc") == nullptr) {
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail<OutOfMemoryError>("out of memory on cuda:", index, ": asked for ", bytes,
                           " bytes outside the pool, which caches ",
                           device_pool(index).statistics().cached, "; free ", free, " of ", total);
  }
  return borrow(cuda_device(index), memory, bytes, std::shared_ptr<void>(memory, [](void* p) {
                  RelaxedCapture inside;
                  cudaFree(p);
                  cudaGetLastError();
                }));
}

StoragePtr allocate_pinned(Device cpu_device, size_t bytes) {
  if (device_count() == 0) {
    fail<DeviceError>("allocate_pinned: page-locked memory needs a GPU: ", no_device_reason());
  }
  if (!thread_capture()) use_device(current_device().is_cuda() ? current_device().index() : 0);
  StoragePtr storage = pinned_pool().allocate(bytes, nullptr);
  storage->device = cpu_device;
  return storage;
}

namespace {

// Whether the graph has allocated the block for this stream, whose order its reuse follows.
bool is_own_memory(const GraphState& capture, const Block& block, const Stream& stream) {
  return capture.memory->owns(block) && block.segment->arena->stream == stream.state();
}

}  // namespace

void record_use(const Storage& storage, const Stream& stream) {
  const bool is_pooled = Pool::made(storage);
  // Whoever owns borrowed memory frees it behind the work that uses it; but replays come later.
  if (!is_pooled && !storage.owner) return;
  GraphState* capture = thread_capture();
  if (capture) {
    // Events of a capture do not cover replays, so the memory is kept with the graph.
    if (is_pooled && is_own_memory(*capture, Pool::block_of(storage), stream)) return;
    capture->kept_storages.emplace_back(const_cast<Storage*>(&storage));
    return;
  }
  if (!is_pooled) return;
  Block& block = Pool::block_of(storage);
  (storage.pinned ? pinned_pool() : device_pool(storage.device.index())).record_use(block, stream);
}

}  // namespace catena::gpu
