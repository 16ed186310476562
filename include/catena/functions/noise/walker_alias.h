// WalkerAlias: draws of indices by their probabilities in constant time.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/autograd/function_set.h"

namespace catena::functions {

// Draws index i with probability probs[i] / sum(probs) by Walker's alias method (Walker 1974): two
// table entries and one random number a draw, whatever the number of indices. The tables are made
// on the host in double, on the current device, and move, copy, save and load with the model that
// lists the sampler as a member. An index of probability 0 is never drawn. probs: from 1 to 2^31 -
// 1 numbers that are finite and not negative, of which one is above 0, else a ValueError; an array
// of any real dtype, with one axis (ShapeError), on any device, for which it waits.
class WalkerAlias : public Parameterized {
 public:
  explicit WalkerAlias(const std::vector<double>& probs);
  explicit WalkerAlias(const Array& probs);

  // int32 indices of this shape, on the tables' device, from its default generator: one kernel,
  // which does not wait, so that it can be captured. Equal seeds give equal indices on every
  // device.
  Array sample(const Shape& shape = {}) const;
  // The number of indices.
  int64_t size() const { return threshold.size(); }

  // Slot s gives values[2s] where a number of [0, 1) is below threshold[s], else values[2s + 1].
  OwnedPersistent threshold;  // float32 (n)
  OwnedPersistent values;     // int32 (2n)
  CATENA_PARAMETERS(threshold, values)
};

}  // namespace catena::functions

namespace catena {
using functions::WalkerAlias;
}
