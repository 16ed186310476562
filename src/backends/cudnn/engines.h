// The engines that cuDNN has for an operation graph.
#pragma once

#include <vector>

#include "backends/cudnn/descriptor.h"
#include "backends/cudnn/graph.h"
#include "backends/cudnn/plan_entry.h"
#include "backends/cudnn/problem.h"

namespace catena::cudnn {

// Configurations of engines by one kind of heuristics, best first. Fewer than `wanted` if cuDNN has
// no more. NotSupported where it has none.
std::vector<Descriptor> candidates(const Graph& graph, cudnnBackendHeurMode_t mode, int64_t wanted);

// Whether the engine of a configuration computes according to the settings.
bool is_allowed(const Descriptor& configuration, const Problem& problem);
// Whether it compiles its kernels when a plan is made.
bool is_compiled_at_run_time(const Descriptor& configuration);

// A configuration in numbers, and the configuration of such numbers. Both throw NotSupported where
// cuDNN knows no such engine or knob. Descriptors refer to others, which must live as long.
EngineChoice choice_of(const Descriptor& configuration);
struct Configuration {
  std::vector<Descriptor> parts;
  Descriptor whole;
};
Configuration configuration_of(const Graph& graph, const EngineChoice& choice);

}  // namespace catena::cudnn
