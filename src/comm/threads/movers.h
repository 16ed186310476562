// Movers of data in the threads communicator: by raw pointers on the CPU, by array operations on
// GPUs.
#pragma once

#include <cstdint>

#include "team.h"

namespace catena::comm {

// Offsets and counts are in elements of flat arrays.
class Mover {
 public:
  virtual ~Mover() = default;
  // Called before other ranks read this rank's input.
  virtual void publish(const Call& call) {}
  virtual void copy(const Array& target, int64_t to, const Array& source, int64_t from,
                    int64_t count) = 0;
  // Elements [from, from + count) of all ranks' inputs, reduced in rank order.
  virtual Array reduce(const Team& team, const Call& call, int64_t from, int64_t count) = 0;
  // Returns when everything asked for is done.
  virtual void finish(const Call& call) {}
};

Mover& host_mover();
Mover& array_mover();

}  // namespace catena::comm
