// Parameters of which each rank has a slice, as norms over ranks see them.
#pragma once

#include "catena/autograd/parameter.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// How much this rank's squares of the parameter count in sums over the ranks: all of a slice that
// no other rank has; what all have whole is counted by the first one, and equal slices of several
// ranks count equally.
double weight_over(const Communicator& comm, const Parameter& parameter);
// Places a parameter as one of which each rank has a slice, whose box nobody knows, unless it is
// placed so already.
void place_as_cut(const Parameter& parameter, const Communicator& comm);
// Makes arrays the sums over the ranks, in place, in one group of calls.
void sum_over_ranks(Communicator& comm, const Arrays& arrays, const char* purpose);

}  // namespace catena::parallel
