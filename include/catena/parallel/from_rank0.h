// Checkpoints that one rank reads for all.
#pragma once

#include <functional>

#include "catena/array/named_arrays.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// A function that calls `read` on rank 0 of `comm` alone and returns its arrays, on cpu:0, on every
// rank. So all ranks go on from one state, and the file need only be where rank 0 is. Collective;
// what `read` throws becomes an IoError with the same text on the other ranks. Without a
// communicator (nullptr) it only reads. `comm` must outlive it.
//
//   if (resume) checkpoint.load("run/checkpoint.npz", parallel::from_rank_0(comm.get()));
std::function<NamedArrays(const std::function<NamedArrays()>& read)> from_rank_0(
    Communicator* comm);

}  // namespace catena::parallel
