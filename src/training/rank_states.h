// Own states of each rank of a run, for checkpoints that rank 0 writes and reads for all.
#pragma once

#include <map>
#include <string>

#include "catena/array/random_state.h"
#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"
#include "catena/training/evaluator.h"

namespace catena::training {

// This rank's.
struct RankState {
  RandomState& random;
  Means& means;  // those of `names` count
  const std::vector<std::string>& names;
  const Parameterized& model;  // whose arrays declared OverRanks::kPerRank count
  bool draws_alike = false;    // all ranks have rank 0's generator, as slices of a batch need it
};

// The states of all ranks by "rank/what", on cpu:0; empty on ranks other than 0. Collective; a null
// `comm` is one process.
std::map<std::string, Array> gather_rank_states(const RankState& own, Communicator* comm);

// Gives this rank its part of what was gathered. `own` has what a checkpoint gives to all, which is
// rank 0's: rank 0's generator and arrays, and means to which nothing was added.
//
// The numbers of ranks may differ, and `saved` may be empty. A rank without a saved state keeps
// rank 0's arrays. It gets a generator with a seed made from rank 0's and its own number, or rank
// 0's generator where several ranks had equal ones. The sums of all saved ranks are divided over
// those that there are. IoError when `saved` is of another form.
void restore_rank_state(const std::map<std::string, Array>& saved, const RankState& own,
                        Communicator* comm);

}  // namespace catena::training
