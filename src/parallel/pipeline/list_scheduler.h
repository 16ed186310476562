// A list scheduler: lists of computations in the order of time, with backwards in two halves.
#pragma once

#include <optional>
#include <vector>

#include "catena/parallel/pipeline/costs.h"
#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// Which of the computations that could begin does.
struct Precedence {
  bool forward_first;  // before gradients of inputs
  bool later_first;    // forwards of the rank's later stages before those of its earlier ones
};

// Nothing if all ranks are at their limits of memory before the end.
std::optional<Schedule> schedule_lists(const std::vector<int>& rank_of_stage, int micro_batches,
                                       const Costs& costs, const std::vector<double>& limits,
                                       const Precedence& precedence);

}  // namespace catena::parallel::pipeline
