// ArenaMemory: where the blocks of arenas come from.
#pragma once

#include <cstdint>
#include <memory>

#include "catena/array/array.h"

namespace catena::optimizers {

// What a block of an arena holds.
enum class ArenaBlock : uint8_t {
  kData,
  kGradient,
  kMaster,  // float32 copies of 16-bit data
  kLow,     // 16-bit copies of float32 data
  kState    // of the rule
};

// Gives arenas their memory, for instance windows that are registered with a network. Without one,
// blocks come from the pools of their devices.
class ArenaMemory {
 public:
  virtual ~ArenaMemory() = default;
  // A 1-d contiguous array of `elements` elements, which begins at a multiple of 256 bytes; its
  // contents do not matter. Ranks that train together ask for the same blocks in the same order, in
  // setup and where Optimizer::settle_layout moves parameters.
  virtual Array allocate(ArenaBlock block, int64_t elements, Dtype dtype, Device device) = 0;
};
// Arenas share it with the optimizer.
using ArenaMemoryPtr = std::shared_ptr<ArenaMemory>;

}  // namespace catena::optimizers
