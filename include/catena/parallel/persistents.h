// Persistent arrays of a model over ranks. A multi-node optimizer calls both for its model.
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// Gives all ranks the mean over the ranks of each array that is declared OverRanks::kMean, with the
// same bits everywhere, and leaves the others alone. Ranks count by the samples that went into
// their array since the last averaging (Persistent::count_samples, which BatchNormalization calls):
// one without samples adds nothing. Where nobody counts, all count the same. Collective; without a
// communicator (nullptr), or with one rank, nothing happens. DeviceError for arrays that are not on
// comm's device. Call it on all ranks before test passes and before rank 0 writes a checkpoint:
//
//   parallel::average_persistents(model, comm.get());
//   if (comm->rank() == 0) checkpoint.save("run/checkpoint.npz");
void average_persistents(const NamedPersistents& persistents, Communicator* comm);
inline void average_persistents(const Parameterized& model, Communicator* comm) {
  average_persistents(model.named_persistents(), comm);
}
inline void average_persistents(const Parameterized& model, Communicator& comm) {
  average_persistents(model, &comm);
}

// Copies those of rank `root` to the other ranks, whatever is declared. Collective; DeviceError as
// above.
void broadcast_persistents(const NamedPersistents& persistents, Communicator& comm, int root = 0);
inline void broadcast_persistents(const Parameterized& model, Communicator& comm, int root = 0) {
  broadcast_persistents(model.named_persistents(), comm, root);
}

}  // namespace catena::parallel
