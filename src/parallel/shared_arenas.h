// Arenas in memory of a communicator, in which its collectives are fastest.
#pragma once

#include <memory>

#include "catena/comm/communicator.h"
#include "catena/optimizers/arena_memory.h"

namespace catena::parallel {

// Data and gradients are exchanged, and come from the communicator if it has memory to give; all
// else, and these otherwise, comes from the pools.
class SharedArenas : public optimizers::ArenaMemory {
 public:
  explicit SharedArenas(Communicator& comm) : comm_(comm.weak_from_this()) {}
  Array allocate(optimizers::ArenaBlock block, int64_t elements, Dtype dtype,
                 Device device) override;

 private:
  // Optimizers may outlive it; a communicator that nobody shares is not used.
  std::weak_ptr<Communicator> comm_;
};

}  // namespace catena::parallel
