// The order in which one thread issues the actions of all ranks of a schedule.
#pragma once

#include <utility>
#include <vector>

#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// An action and its rank.
struct Issued {
  int rank;
  Action action;
};

// Every action after those that it needs, and about when ranks would begin it that compute a
// forward in one unit of time and each half of a backward in one. ValueError when a rank waits for
// a message that nobody sends.
std::vector<Issued> issue_order(const Schedule& schedule);

}  // namespace catena::parallel::pipeline
