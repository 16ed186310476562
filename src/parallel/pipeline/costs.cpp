#include "catena/parallel/pipeline/costs.h"

#include <algorithm>
#include <cmath>

#include "catena/core/error.h"

namespace catena::parallel::pipeline {
namespace {

void check_number(double value, const char* what) {
  CATENA_CHECK(ValueError, std::isfinite(value) && value >= 0, "costs of a pipeline: ", what,
               " is ", value, "; expected a finite number of at least 0");
}

double share(const Costs& costs, const Schedule& schedule, int micro_batch) {
  return micro_batch == schedule.micro_batches - 1 ? costs.last_micro_batch : 1;
}

}  // namespace

void check(const Costs& costs, const Schedule& schedule) {
  const size_t count = costs.stages.size();
  CATENA_CHECK(ValueError, count == 1 || count == size_t(schedule.stages()),
               "costs of a pipeline: they have entries for ", count, " stages, schedule '",
               schedule.name, "' has ", schedule.stages(), "; give one for each, or one for all");
  for (const StageCosts& stage : costs.stages) {
    check_number(stage.forward, "forward");
    check_number(stage.backward, "backward");
    check_number(stage.inputs, "inputs");
    check_number(stage.weights, "weights");
    check_number(stage.reduce, "reduce");
    check_number(stage.update, "update");
    check_number(stage.activations, "activations");
    check_number(stage.for_weights, "for_weights");
    check_number(stage.output, "output");
  }
  check_number(costs.last_micro_batch, "last_micro_batch");
  check_number(costs.latency, "latency");
  CATENA_CHECK(ValueError, costs.bytes_per_second > 0, "costs of a pipeline: bytes_per_second is ",
               costs.bytes_per_second, "; expected a number above 0");
}

double seconds_of(const Costs& costs, const Schedule& schedule, const Action& action) {
  const StageCosts& stage = costs.of(action.stage);
  const double part = share(costs, schedule, action.micro_batch);
  switch (action.kind) {
    case Kind::kForward: return part * stage.forward;
    case Kind::kBackward: return part * stage.backward;
    case Kind::kBackwardInputs: return part * stage.inputs;
    case Kind::kBackwardWeights: return part * stage.weights;
    case Kind::kReduce: return stage.reduce;
    case Kind::kUpdate: return stage.update;
    default: return costs.latency + bytes_of(costs, schedule, action) / costs.bytes_per_second;
  }
}

double bytes_of(const Costs& costs, const Schedule& schedule, const Action& message) {
  const int border = std::min(message.stage, peer_stage(message));
  return share(costs, schedule, message.micro_batch) * costs.of(border).output;
}

}  // namespace catena::parallel::pipeline
