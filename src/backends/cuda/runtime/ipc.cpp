#include "backends/cuda/runtime/ipc.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/pool_arena.h"
#include "backends/cuda/runtime/streams.h"

namespace catena::gpu {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(Backend::IpcMemory::handle));
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(Backend::IpcEvent::handle));

Backend::IpcMemory export_memory(const Storage& storage, const void* memory) {
  refuse_during_capture("IPCArrayHandle");
  UseDevice use(storage.device.index());
  // CUDA exports whole allocations: a segment of the pool, or a block that is an allocation.
  char* base = Pool::made(storage) ? Pool::block_of(storage).segment->memory
                                   : static_cast<char*>(storage.data);
  cudaIpcMemHandle_t handle;
  CATENA_CUDA_CHECK(cudaIpcGetMemHandle(&handle, base));
  Backend::IpcMemory result;
  std::memcpy(result.handle, &handle, sizeof handle);
  result.offset = static_cast<size_t>(static_cast<const char*>(memory) - base);
  return result;
}

StoragePtr import_memory(int index, const Backend::IpcMemory& memory, size_t bytes) {
  refuse_during_capture("IPCArrayHandle::get");
  device_info(index);
  UseDevice use(index);
  cudaIpcMemHandle_t handle;
  std::memcpy(&handle, memory.handle, sizeof handle);
  void* base = nullptr;
  CATENA_CUDA_CHECK(cudaIpcOpenMemHandle(&base, handle, cudaIpcMemLazyEnablePeerAccess));
  const std::shared_ptr<void> owner(base, [index](void* opened) {
    RelaxedCapture relaxed;
    UseDevice inside(index);
    cudaDeviceSynchronize();  // enqueued work may still read the memory
    cudaIpcCloseMemHandle(opened);
    cudaGetLastError();
  });
  return borrow(cuda_device(index), static_cast<char*>(base) + memory.offset, bytes, owner);
}

Backend::IpcEvent export_event(EventState* state) {
  use_device(state->device.index());
  cudaIpcEventHandle_t handle;
  CATENA_CUDA_CHECK(cudaIpcGetEventHandle(&handle, static_cast<cudaEvent_t>(state->native)));
  Backend::IpcEvent result;
  std::memcpy(result.handle, &handle, sizeof handle);
  return result;
}

EventState* import_event(int index, const Backend::IpcEvent& event) {
  device_info(index);
  UseDevice use(index);
  cudaIpcEventHandle_t handle;
  std::memcpy(&handle, event.handle, sizeof handle);
  cudaEvent_t native;
  CATENA_CUDA_CHECK(cudaIpcOpenEventHandle(&native, handle));
  return adopt_event(index, native);
}

}  // namespace catena::gpu
