// GPU memory that other processes of the host may write (CUDA IPC).
#pragma once

#include <memory>
#include <vector>

#include "nccl_calls.h"
#include "peer_block.h"

namespace catena::comm::nccl {

// What a rank says to all others about memory that they may map.
struct PeerMemory {
  bool is_shared = false;
  cudaIpcMemHandle_t handle{};
};

// The ranks that may map each other's memory, as seen from one of them: processes of their own on
// the same host, none of which has direct copies turned off (copies_directly).
class PeerRanks {
 public:
  // Collective. Asked before memory is made, which would be in vain without it.
  static PeerRanks find(Communicator& control);
  bool has(int rank) const { return has_[size_t(rank)]; }
  bool has_any() const;
  // Whether any two ranks of the communicator may, and whether all may: equal on all ranks.
  bool any_two() const { return any_two_; }
  bool all() const { return all_; }

 private:
  std::vector<bool> has_;
  bool any_two_ = false, all_ = true;
};

// New memory of the current GPU, zeroed, at `*memory`. It is not shared where CUDA refuses; there
// may be memory to be freed even then.
PeerMemory share_memory(void** memory, size_t bytes);
// Memory of another process, or null. Also of a GPU that this process does not see.
void* map_memory(const cudaIpcMemHandle_t& handle);
// Whether all ranks say yes. Collective.
bool all_agree(Communicator& control, bool yes);

// Ends the waits of kernels whose blocks have these states, on a GPU that may be busy with them.
// Any thread; `stream` is for this alone.
void stop_blocks(BlockState* states, size_t blocks, int device, cudaStream_t stream) noexcept;

// Memory of one size on the GPU of each rank of a communicator, which all ranks have mapped.
class PeerRegion {
 public:
  // Collective: new memory of the current GPU, zeroed, for 2 to kMostRanks ranks that may all map
  // each other's memory (PeerRanks). Null unless CUDA lets them.
  static std::unique_ptr<PeerRegion> create(Communicator& control, size_t bytes);
  // Frees nothing: work that failed may use it. See close().
  ~PeerRegion() = default;
  PeerRegion(const PeerRegion&) = delete;
  PeerRegion& operator=(const PeerRegion&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return int(seen_.size()); }
  // The memory of a rank, as this rank sees it.
  char* of(int rank) const { return seen_[size_t(rank)]; }
  char* own() const { return of(rank_); }
  // This rank's memory, as another one sees it.
  char* own_seen_by(int rank) const { return seen_there_[size_t(rank)]; }

  // Collective, with all work done: takes the memory from the other ranks.
  void close(Communicator& control);
  // This rank's memory, after close().
  void free();

 private:
  PeerRegion() = default;
  bool map(const std::vector<PeerMemory>& all);
  void unmap();

  int rank_ = 0;
  std::vector<char*> seen_, seen_there_;  // of each rank
};

}  // namespace catena::comm::nccl
