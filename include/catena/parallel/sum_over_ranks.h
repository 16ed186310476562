// Sums of host numbers over ranks.
#pragma once

#include <span>

#include "catena/comm/communicator.h"

namespace catena::parallel {

// Adds each number over all ranks of `comm`, in place, in order of rank: all get the same bits. It
// is collective, with as many numbers on every rank (ValueError otherwise). Without a communicator
// (nullptr) they stay as they are.
void sum_over_ranks(std::span<double> numbers, Communicator* comm);

}  // namespace catena::parallel
