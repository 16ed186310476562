// Costs of the actions of a pipeline: seconds and bytes, measured or assumed.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// Of one micro-batch through one stage. As they stand: forward, gradients of inputs and gradients
// of weights take one unit each, and peak memory counts micro-batches.
struct StageCosts {
  double forward = 1;      // seconds
  double backward = 2;     // kBackward
  double inputs = 1;       // kBackwardInputs
  double weights = 1;      // kBackwardWeights; also without kBackwardInputs before it
  double reduce = 0;       // once a step
  double update = 0;       // once a step
  double activations = 1;  // bytes kept from the forward to kBackward or kBackwardInputs
  double for_weights = 1;  // bytes kept from kBackwardInputs to kBackwardWeights
  double output = 0;  // bytes of the output; of a message to the next stage and of the one back
  bool operator==(const StageCosts&) const = default;
};

// How ranks and messages share the time.
enum class Transfers : unsigned char {
  kOverlap,  // on a side stream of each rank, in the order of its list; who needs them waits
  kBlock     // the rank waits for each group
};

// Of all stages and messages.
struct Costs {
  std::vector<StageCosts> stages = {{}};  // of each stage, or one entry for all
  double last_micro_batch = 1;            // its size, as a share of the others' size
  double latency = 0;                     // seconds of each message
  double bytes_per_second = std::numeric_limits<double>::infinity();
  Transfers transfers = Transfers::kOverlap;

  // Whether all numbers are equal.
  bool operator==(const Costs&) const = default;
  // Of that stage.
  const StageCosts& of(int stage) const { return stages[stages.size() == 1 ? 0 : size_t(stage)]; }
};

// ValueError unless there are as many entries as stages (or one), all numbers are finite and not
// negative, and the bandwidth is above 0; it may be infinite.
void check(const Costs& costs, const Schedule& schedule);

// Of a computation, a reduction or an update of that schedule; of a message, without waiting.
double seconds_of(const Costs& costs, const Schedule& schedule, const Action& action);
// Of a message.
double bytes_of(const Costs& costs, const Schedule& schedule, const Action& message);

}  // namespace catena::parallel::pipeline
