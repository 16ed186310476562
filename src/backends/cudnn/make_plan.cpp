#include "backends/cudnn/make_plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "backends/common/fastest.h"
#include "catena/core/error.h"
#include "catena/core/log.h"

namespace catena::cudnn {
namespace {

// Engines of cuDNN -------------------------------------------------------------------------------

// The engine of a configuration.
Descriptor engine_of(const Descriptor& configuration) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t native = engine.native();
  int64_t count = 0;
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(configuration.native(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &native));
  return engine;
}

// Several values of an attribute, at most as many as `room` has.
template <class T>
std::span<const T> values_of(const Descriptor& of, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, std::span<T> room) {
  int64_t count = 0;
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(
      of.native(), name, type, static_cast<int64_t>(room.size()), &count, room.data()));
  return room.first(std::min(static_cast<size_t>(std::max<int64_t>(count, 0)), room.size()));
}

template <class T>
T value_of(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type) {
  T value{};
  int64_t count = 0;
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(of, name, type, 1, &count, &value));
  return value;
}

std::vector<Descriptor> make_several(cudnnBackendDescriptorType_t type, int64_t count,
                                     std::vector<cudnnBackendDescriptor_t>& natives) {
  std::vector<Descriptor> made;
  for (int64_t i = 0; i < count; ++i) {
    made.emplace_back(type);
    natives.push_back(made.back().native());
  }
  return made;
}

// Whether the settings allow what the note says. Transforms of the image (weight gradients were off
// by 3e-3 of the largest element) and arithmetic in fewer bits need a matmul_precision below
// float32. Sums of 16-bit floats are made in float.
bool allows(const EngineRules& rules, cudnnBackendNumericalNote_t note) {
  const bool relaxed = rules.dtype == Dtype::kFloat32 && !rules.exact;
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return !rules.deterministic;
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return false;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // rounds the factors of float32 products
      return relaxed || rules.dtype != Dtype::kFloat32;
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return relaxed;
    default: return true;
  }
}

// Configurations of engines by one kind of heuristics, best first. Fewer than `wanted` if cuDNN has
// no more. NotSupported where it has none.
std::vector<Descriptor> candidates(const Graph& graph, cudnnBackendHeurMode_t mode,
                                   int64_t wanted) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.whole);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  heuristics.finalize();
  std::vector<cudnnBackendDescriptor_t> natives;
  std::vector<Descriptor> found = make_several(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, wanted, natives);
  const auto results = values_of<cudnnBackendDescriptor_t>(
      heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, natives);
  found.resize(results.size());
  return found;
}

// Whether the engine of a configuration computes according to the settings.
bool is_allowed(const Descriptor& configuration, const EngineRules& rules) {
  cudnnBackendNumericalNote_t room[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const auto notes = values_of<cudnnBackendNumericalNote_t>(
      engine_of(configuration), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, room);
  return std::all_of(notes.begin(), notes.end(),
                     [&](cudnnBackendNumericalNote_t note) { return allows(rules, note); });
}

// Whether it compiles its kernels when a plan is made.
bool is_compiled_at_run_time(const Descriptor& configuration) {
  cudnnBackendBehaviorNote_t room[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
  const auto notes = values_of<cudnnBackendBehaviorNote_t>(
      engine_of(configuration), CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, room);
  return std::find(notes.begin(), notes.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) !=
         notes.end();
}

// A configuration in numbers, and the configuration of such numbers. Both throw NotSupported where
// cuDNN knows no such engine or knob. Descriptors refer to others, which must live as long.
EngineChoice choice_of(const Descriptor& configuration) {
  EngineChoice choice;
  choice.engine = value_of<int64_t>(engine_of(configuration).native(),
                                    CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64);
  std::vector<cudnnBackendDescriptor_t> natives;
  const std::vector<Descriptor> knobs =
      make_several(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, natives);
  for (const cudnnBackendDescriptor_t knob :
       values_of<cudnnBackendDescriptor_t>(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, natives))
    choice.knobs.push_back(
        {value_of<cudnnBackendKnobType_t>(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                          CUDNN_TYPE_KNOB_TYPE),
         value_of<int64_t>(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64)});
  return choice;
}

struct Configuration {
  std::vector<Descriptor> parts;
  Descriptor whole;
};
Configuration configuration_of(const Graph& graph, const EngineChoice& choice) {
  Configuration made;
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.whole);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  engine.finalize();
  std::vector<cudnnBackendDescriptor_t> natives;
  for (const auto& [number, value] : choice.knobs) {
    const auto type = static_cast<cudnnBackendKnobType_t>(number);
    Descriptor knob(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    knob.finalize();
    natives.push_back(knob.native());
    made.parts.push_back(std::move(knob));
  }
  made.whole = Descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  made.whole.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!natives.empty())
    made.whole.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                   static_cast<int64_t>(natives.size()), natives.data());
  made.whole.finalize();
  made.parts.push_back(std::move(engine));
  return made;
}

// Plans -----------------------------------------------------------------------------------------

// Asking for all candidates takes a millisecond, and one of the first nearly always fits.
constexpr int64_t kFirstCandidates = 4;
constexpr int64_t kMostCandidates = 100;
// For a tuned problem, the candidates that are tried and the plans that are measured.
constexpr int64_t kTunedCandidates = 12;
constexpr size_t kMostMeasured = 8;

// A plan that was finalized, if its scratch memory keeps to the limit; else an unusable one.
Plan within_limit(Descriptor native, const EngineRules& rules) {
  Plan plan;
  int64_t count = 0;
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(native.native(),
                                              CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                              CUDNN_TYPE_INT64, 1, &count, &plan.workspace));
  if (plan.workspace <= rules.workspace_limit) plan.native = std::move(native);
  return plan;
}

// The plan of one candidate. It is unusable if it cannot be made here or needs too much memory.
Plan try_candidate(const Descriptor& configuration, const EngineRules& rules, cudnnHandle_t handle,
                   bool* lasting) {
  Descriptor native(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  native.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  native.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  // The heuristics name engines that this GPU, driver or shape may not support. Whatever the
  // reason, the next candidate is tried.
  const cudnnStatus_t status = cudnnBackendFinalize(native.native());
  if (status == CUDNN_STATUS_SUCCESS) return within_limit(std::move(native), rules);
  logging::debug("cuDNN: an engine is left out: ", cudnnGetErrorString(status));
  if (!is_lasting(status)) *lasting = false;
  return {};
}

// cuDNN's text of a plan whose kernels were compiled for it; "" where there is none.
std::string compiled_text(const Descriptor& plan) {
  constexpr auto kName = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  int64_t size = 0;
  if (cudnnBackendGetAttribute(plan.native(), kName, CUDNN_TYPE_CHAR, 0, &size, nullptr) !=
          CUDNN_STATUS_SUCCESS ||
      size <= 0)
    return "";
  std::string text(static_cast<size_t>(size), '\0');
  const cudnnStatus_t status =
      cudnnBackendGetAttribute(plan.native(), kName, CUDNN_TYPE_CHAR, size, &size, text.data());
  return status == CUDNN_STATUS_SUCCESS ? text : "";
}

// The plan of such a text; unusable where cuDNN refuses it.
Plan plan_of_compiled(const std::string& text, const EngineRules& rules, cudnnHandle_t handle) {
  Descriptor native(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  native.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             static_cast<int64_t>(text.size()), text.data());
  native.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  const cudnnStatus_t status = cudnnBackendFinalize(native.native());
  if (status == CUDNN_STATUS_SUCCESS) return within_limit(std::move(native), rules);
  logging::debug("cuDNN: a plan from the cache is compiled again: ", cudnnGetErrorString(status));
  return {};
}

// The entry of an engine's plan; none where cuDNN does not say the numbers of the engine.
std::optional<PlanEntry> entry_of(const Descriptor& configuration, const Plan& plan) {
  try {
    PlanEntry entry{choice_of(configuration), ""};
    if (is_compiled_at_run_time(configuration)) entry.compiled = compiled_text(plan.native);
    return entry;
  } catch (const NotSupported&) {
    return {};
  }
}

// The plan of a configuration that the settings allow; unusable where there is none.
Plan try_allowed(const Descriptor& configuration, const EngineRules& rules, cudnnHandle_t handle,
                 bool* lasting) {
  try {
    if (is_allowed(configuration, rules))
      return try_candidate(configuration, rules, handle, lasting);
  } catch (const NotSupported& refusal) {  // only this candidate is left out
    if (!refusal.lasting) *lasting = false;
  }
  return {};
}

// The first usable of the configurations from `begin` on, into `made`.
bool take_first(const std::vector<Descriptor>& configurations, size_t begin,
                const EngineRules& rules, cudnnHandle_t handle, bool* lasting, MadePlan& made) {
  for (size_t i = begin; i < configurations.size(); ++i) {
    made.plan = try_allowed(configurations[i], rules, handle, lasting);
    if (!made.plan.usable()) continue;
    if (*lasting) made.entry = entry_of(configurations[i], made.plan);
    return true;
  }
  return false;
}

// The index of the fastest plan; the first one where there is no memory for measurements. A choice
// without all measurements must not last.
size_t measured_fastest(const std::vector<Plan>& plans, const PlanRequest& request, bool* lasting) {
  if (plans.size() == 1) return 0;
  try {
    const std::vector<double> times = request.times(plans);
    const size_t best = fastest(times);
    for (const double time : times)
      if (std::isinf(time)) *lasting = false;
    logging::debug("cuDNN: measured ", plans.size(), " plans: the first takes ", times[0],
                   " ms, number ", best, " takes ", times[best], " ms");
    return best;
  } catch (const OutOfMemoryError& error) {
    logging::debug("cuDNN: plans are not measured: ", error.what());
    *lasting = false;
    return 0;
  }
}

// The fastest of the first usable configurations, into `made`.
bool take_fastest(const std::vector<Descriptor>& configurations, const PlanRequest& request,
                  cudnnHandle_t handle, bool* lasting, MadePlan& made) {
  std::vector<Plan> plans;
  std::vector<const Descriptor*> origins;
  for (const Descriptor& configuration : configurations) {
    if (plans.size() == kMostMeasured) break;
    Plan plan = try_allowed(configuration, request.rules, handle, lasting);
    if (!plan.usable()) continue;
    plans.push_back(std::move(plan));
    origins.push_back(&configuration);
  }
  if (plans.empty()) return false;
  const size_t best = measured_fastest(plans, request, lasting);
  made.plan = std::move(plans[best]);
  if (*lasting) made.entry = entry_of(*origins[best], made.plan);
  return true;
}

}  // namespace

MadePlan choose_plan(const PlanRequest& request, cudnnHandle_t handle) {
  MadePlan made;
  bool lasting = request.lasting;
  const auto without_refusals = [&](auto&& attempt) {
    try {
      return attempt();
    } catch (const NotSupported& refusal) {
      if (!refusal.lasting) lasting = false;
      return false;
    }
  };
  const bool found = without_refusals([&] {
    const Graph graph = request.graph(handle);
    const auto take = [&](cudnnBackendHeurMode_t mode, int64_t wanted, size_t begin) {
      return without_refusals([&] {
        return take_first(candidates(graph, mode, wanted), begin, request.rules, handle, &lasting,
                          made);
      });
    };
    const auto tune = [&] {
      return without_refusals([&] {
        return take_fastest(candidates(graph, CUDNN_HEUR_MODE_A, kTunedCandidates), request, handle,
                            &lasting, made);
      });
    };
    return (request.times && tune()) || take(CUDNN_HEUR_MODE_A, kFirstCandidates, 0) ||
           take(CUDNN_HEUR_MODE_A, kMostCandidates, kFirstCandidates) ||
           take(CUDNN_HEUR_MODE_FALLBACK, kMostCandidates, 0);
  });
  if (!found) {
    made.plan = {};
    if (lasting) made.entry = PlanEntry{};
  }
  return made;
}

std::optional<Plan> plan_of_entry(const PlanEntry& entry, const PlanRequest& request,
                                  cudnnHandle_t handle) {
  if (!entry.choice) return Plan{};
  try {
    const Graph graph = request.graph(handle);
    const Configuration configuration = configuration_of(graph, *entry.choice);
    if (!is_allowed(configuration.whole, request.rules)) return {};
    Plan plan;
    if (!entry.compiled.empty()) plan = plan_of_compiled(entry.compiled, request.rules, handle);
    bool lasting = true;
    if (!plan.usable()) plan = try_candidate(configuration.whole, request.rules, handle, &lasting);
    if (plan.usable()) return plan;
  } catch (const NotSupported&) {
  } catch (const DeviceError& error) {
    logging::debug("cuDNN: a plan from the cache is chosen anew: ", error.what());
  }
  return {};
}

}  // namespace catena::cudnn
