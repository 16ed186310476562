// What a plan is made for: a graph of operations, and which engines may run it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backends/cudnn/descriptor.h"
#include "catena/core/dtype.h"

namespace catena::cudnn {

// An operation graph. Descriptors refer to others, which must live as long.
struct Graph {
  std::vector<Descriptor> parts;
  Descriptor whole;
};

// An engine of cuDNN that was chosen for a graph, ready to run.
struct Plan {
  Descriptor native;  // empty: cuDNN has no engine that may be used
  int64_t workspace = 0;
  bool cleared = false;  // the workspace must be zeros when the plan begins
  bool usable() const { return bool(native); }
};

struct EngineRules {
  Dtype dtype;
  bool exact;  // all digits of the dtype must be right
  bool deterministic;
  int64_t workspace_limit;  // bytes
};

struct PlanRequest {
  EngineRules rules;
  // Throws NotSupported if cuDNN has no such graph.
  std::function<Graph(cudnnHandle_t)> graph;
  // Milliseconds of one run of each plan, where the fastest one is wanted; may throw
  // OutOfMemoryError. Empty: the first usable plan is taken.
  std::function<std::vector<double>(std::span<const Plan>)> times = {};
  // Whether the choice holds for later processes. It does not where the fastest was wanted, but
  // could not be measured.
  bool lasting = true;
  bool cleared = false;  // see Plan
};

}  // namespace catena::cudnn
