// Functions that make a plan: with the best engine that the settings allow, or with the one that an
// earlier process chose.
#pragma once

#include <optional>

#include "backends/cudnn/plan_entry.h"
#include "backends/cudnn/plan_request.h"

namespace catena::cudnn {

struct MadePlan {
  Plan plan;
  // What later processes need to make the same plan. None where this choice must not last: an
  // engine failed for a reason that may pass, such as missing memory.
  std::optional<PlanEntry> entry;
};

// Asks cuDNN's heuristics. The caller holds the handle's lock. The GPU is the thread's current
// device.
MadePlan choose_plan(const PlanRequest& request, cudnnHandle_t handle);

// The plan of an entry. Nothing where cuDNN refuses it, or the rules forbid the engine.
std::optional<Plan> plan_of_entry(const PlanEntry& entry, const PlanRequest& request,
                                  cudnnHandle_t handle);

}  // namespace catena::cudnn
