// BatchOrder: where a batch comes from, as far as ranks must agree in it.
#pragma once

#include <cstdint>

namespace catena::parallel {

// The order in which the samples of a data set are visited, and how far it has come with a batch
// that is divided over the ranks. All zero: not known.
struct BatchOrder {
  int64_t samples = 0;  // of the data set
  int64_t batch = 0;    // samples of a full batch, over all ranks
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t position = 0;  // in the epoch, after the batch
};

}  // namespace catena::parallel
