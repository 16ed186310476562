// Random numbers of slices of a batch: those of a slice do not depend on who runs it.
#pragma once

#include <optional>

#include "catena/array/random_state.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// Every step takes the same number of blocks from the generator of each rank, and every slice has
// its part of them. The generators are equal on all ranks: they are rank 0's after setup. They are
// the devices' default ones, so that a checkpoint of these goes on; but ranks that are threads and
// share a device, and with it its generator, have one of their own each.
class SliceNumbers {
 public:
  SliceNumbers(Communicator& comm, int slices) : comm_(comm), slices_(slices) {}

  // Collective.
  void after_setup();
  void begin_step();
  // Where the numbers of a slice begin in this step.
  RandomBits of(int slice) const;
  // Collective: ValueError on all ranks unless their generators are equal.
  void check();

 private:
  RandomState& generator();

  Communicator& comm_;
  int slices_;
  std::optional<RandomState> own_;
  RandomBits first_;
};

}  // namespace catena::parallel
