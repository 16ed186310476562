// Signs that several ranks work together in this process, for parts of the library that know
// nothing of communicators.
#pragma once

#include <atomic>
#include <cstdint>

namespace catena {

struct RanksInUse {
  std::atomic<int> communicators{0};   // of several ranks, that are alive
  std::atomic<bool> exchanges{false};  // values of arrays were combined or sent between ranks
  std::atomic<bool> warned{false};     // of optimizers that train each rank apart
};
RanksInUse& ranks_in_use();

}  // namespace catena
