#include "backends/cudnn/engines.h"

#include <algorithm>
#include <span>

namespace catena::cudnn {
namespace {

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
bool allows(const Problem& p, cudnnBackendNumericalNote_t note) {
  const bool relaxed = p.dtype == Dtype::kFloat32 && !p.is_exact();
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return !p.deterministic;
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return false;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // rounds the factors of float32 products
      return relaxed || p.dtype != Dtype::kFloat32;
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return relaxed;
    default: return true;
  }
}

}  // namespace

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

bool is_allowed(const Descriptor& configuration, const Problem& problem) {
  cudnnBackendNumericalNote_t room[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const auto notes = values_of<cudnnBackendNumericalNote_t>(
      engine_of(configuration), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, room);
  return std::all_of(notes.begin(), notes.end(),
                     [&](cudnnBackendNumericalNote_t note) { return allows(problem, note); });
}

bool is_compiled_at_run_time(const Descriptor& configuration) {
  cudnnBackendBehaviorNote_t room[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
  const auto notes = values_of<cudnnBackendBehaviorNote_t>(
      engine_of(configuration), CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, room);
  return std::find(notes.begin(), notes.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) !=
         notes.end();
}

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

}  // namespace catena::cudnn
