// Helpers of code that runs models with layers whose statistics are those of several ranks.
#pragma once

#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// While it lives, synchronised layers of the calling thread wait for nobody, and take this rank's
// batch for that of every rank: for forward passes that other ranks do not make, of which only the
// shapes count. A single sample is enough.
class OwnStatistics {
 public:
  OwnStatistics();
  ~OwnStatistics();
  OwnStatistics(const OwnStatistics&) = delete;
  OwnStatistics& operator=(const OwnStatistics&) = delete;

 private:
  bool previous_;
};

// Whether the model has a layer that waits for other ranks in train state.
bool has_synchronised_layer(Parameterized& model);

// The communicators over which its layers are synchronised, each once; those of one rank left out.
std::vector<CommunicatorPtr> communicators_of_layers(Parameterized& model);

}  // namespace catena::parallel
