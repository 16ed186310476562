// See peer_memory.h.
#include "peer_memory.h"

#include <unistd.h>

namespace catena::comm::nccl {

PeerMemory share_memory(void** memory, size_t bytes, const Communicator& control) {
  PeerMemory own;
  own.host = control.topology().hosts[size_t(control.rank())];
  own.process = getpid();
  own.is_shared = copies_directly() && cudaMalloc(memory, bytes) == cudaSuccess &&
                  cudaMemset(*memory, 0, bytes) == cudaSuccess &&
                  cudaDeviceSynchronize() == cudaSuccess &&
                  cudaIpcGetMemHandle(&own.handle, *memory) == cudaSuccess;
  if (!own.is_shared) cudaGetLastError();
  return own;
}

bool may_map(const PeerMemory& own, const PeerMemory& other) {
  return own.is_shared && other.is_shared && other.host == own.host && other.process != own.process;
}

void* map_memory(const cudaIpcMemHandle_t& handle) {
  void* mapped = nullptr;
  if (cudaIpcOpenMemHandle(&mapped, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
    return mapped;
  cudaGetLastError();
  return nullptr;
}

}  // namespace catena::comm::nccl
