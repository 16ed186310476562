// GPU memory that other processes of the host may write (CUDA IPC).
#pragma once

#include <sys/types.h>

#include "nccl_calls.h"

namespace catena::comm::nccl {

// What a rank tells all others of such memory of its own.
struct PeerMemory {
  bool is_shared = false;
  int host = 0;
  pid_t process = 0;
  cudaIpcMemHandle_t handle{};
};

// New memory of the current GPU, zeroed, at `*memory`. It is not shared where direct copies are
// turned off (copies_directly) or CUDA refuses; there may be memory to be freed even then.
PeerMemory share_memory(void** memory, size_t bytes, const Communicator& control);
// Whether `own` rank's process may map the memory of `other`: a process of its own on the same
// host.
bool may_map(const PeerMemory& own, const PeerMemory& other);
// Memory of another process, or null. Also of a GPU that this process does not see.
void* map_memory(const cudaIpcMemHandle_t& handle);

}  // namespace catena::comm::nccl
