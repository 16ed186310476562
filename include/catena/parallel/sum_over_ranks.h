// Sums of host numbers over ranks.
#pragma once

#include <functional>
#include <span>

#include "catena/comm/communicator.h"

namespace catena::parallel {

// A function that adds each number over all ranks of `comm`, in place, in order of rank: all get
// the same bits. It is collective, with as many numbers on every rank (ValueError otherwise).
// training::Means::reduce and training::evaluate take it; without a communicator (nullptr) the
// function is empty, which they understand as a single process. `comm` must outlive it.
//
//   training::Means test({"loss"});
//   for (...) test.add("loss", loss.data(), n);
//   test.reduce(parallel::sum_over_ranks(comm.get()));
//   double loss = test.value("loss");  // over the samples of all ranks
std::function<void(std::span<double>)> sum_over_ranks(Communicator* comm);

}  // namespace catena::parallel
