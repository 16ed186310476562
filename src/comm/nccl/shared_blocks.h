// Blocks of memory for arrays that go through many collectives: arenas of gradients and parameters.
#pragma once

#include <memory>
#include <vector>

#include "nccl_core.h"
#include "peer_memory.h"
#include "two_shot.h"
#include "ways.h"

namespace catena::comm::nccl {

// Blocks are reused, for they are costly to make. They outlive this object, and the communicator,
// as long as an array is in them.
class SharedBlocks {
 public:
  SharedBlocks(int device, SharedMemory kind) : device_(device), kind_(kind) {}
  SharedBlocks(const SharedBlocks&) = delete;
  SharedBlocks& operator=(const SharedBlocks&) = delete;

  // Collective: a block of so many bytes; null unless all ranks can have it, and when ranks ask for
  // different sizes. Its contents do not matter. Without the core's mutex.
  StoragePtr allocate(size_t bytes, Core& core, Communicator& control);
  // Where the other ranks see these bytes, if they are in a block that they have mapped. The other
  // ranks' addresses are of their places in the same block.
  bool find(const void* data, size_t bytes, SeenBy& seen) const;
  // Where such bytes of the other ranks are, at the same place of the same block, as this rank sees
  // them.
  bool find_others(const void* data, size_t bytes, SeenBy& others) const;
  // Collective, with all work done, under the core's mutex. With `keep` blocks stay mapped, and
  // their memory is kept, until the process ends.
  void close(bool keep, Core& core, Communicator& control);

 private:
  struct Block;
  bool find_by(char* (PeerRegion::*place)(int) const, const void* data, size_t bytes,
               SeenBy& found) const;
  std::shared_ptr<Block> reuse(size_t bytes, Communicator& control);
  std::shared_ptr<Block> make(size_t bytes, Core& core, Communicator& control);

  const int device_;
  const SharedMemory kind_;
  bool is_open_ = true;
  std::vector<std::shared_ptr<Block>> blocks_;  // equal in number and size on all ranks
};

}  // namespace catena::comm::nccl
