#include "backends/cudnn/plan.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/common/plan_cache.h"
#include "backends/cuda/companion.h"
#include "backends/cudnn/graph.h"
#include "backends/cudnn/known_bugs.h"
#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"

namespace catena::cudnn {
namespace {

// Asking for all candidates takes a millisecond, and one of the first nearly always fits.
constexpr int64_t kFirstCandidates = 4;
constexpr int64_t kMostCandidates = 100;
// The most plans that are kept.
constexpr size_t kMostPlans = 4096;

// Configurations of engines, best first. Fewer than `wanted` if cuDNN has no more.
std::vector<Descriptor> candidates(const Graph& graph, cudnnBackendHeurMode_t mode,
                                   int64_t wanted) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.whole);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  heuristics.finalize();
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> natives;
  for (int64_t i = 0; i < wanted; ++i) {
    found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    natives.push_back(found.back().native());
  }
  int64_t count = 0;
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(heuristics.native(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, wanted, &count,
                                              natives.data()));
  found.resize(static_cast<size_t>(std::min(count, wanted)));
  return found;
}

// Whether the settings allow what the note says. Transforms of the image (weight gradients were off
// by 3e-3 of the largest element) and arithmetic in fewer bits need a matmul_precision below
// float32. Sums of 16-bit floats are made in float.
bool is_allowed(cudnnBackendNumericalNote_t note, const Problem& p) {
  const bool relaxed = p.dtype == Dtype::kFloat32 && !p.is_exact();
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return !p.deterministic;
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      return false;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // rounds the factors of float32 products
      return relaxed || p.dtype != Dtype::kFloat32;
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
      return relaxed;
    default:
      return true;
  }
}

// Whether the engine computes according to the settings.
bool is_allowed(const Descriptor& configuration, const Problem& p) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t native = engine.native();
  int64_t count = 0;
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(configuration.native(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &native));
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(native, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                              CUDNN_TYPE_NUMERICAL_NOTE,
                                              CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
  const int64_t known = std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::all_of(notes, notes + known,
                     [&](cudnnBackendNumericalNote_t note) { return is_allowed(note, p); });
}

// The plan of one candidate. It is unusable if it cannot be made here or needs too much memory.
Plan try_candidate(const Descriptor& configuration, const Problem& p, cudnnHandle_t handle) {
  Plan plan;
  Descriptor native(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  native.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  native.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  // The heuristics name engines that this GPU, driver or shape may not support. Whatever the
  // reason, the next candidate is tried.
  const cudnnStatus_t status = cudnnBackendFinalize(native.native());
  if (status != CUDNN_STATUS_SUCCESS) {
    logging::debug("cuDNN: an engine is left out: ", cudnnGetErrorString(status));
    return plan;
  }
  int64_t count = 0;
  CATENA_CUDNN_CHECK(cudnnBackendGetAttribute(native.native(),
                                              CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                              CUDNN_TYPE_INT64, 1, &count, &plan.workspace));
  if (plan.workspace > p.workspace_limit) return plan;
  plan.native = std::move(native);
  return plan;
}

Plan first_usable(const std::vector<Descriptor>& configurations, size_t begin, const Problem& p,
                  cudnnHandle_t handle) {
  for (size_t i = begin; i < configurations.size(); ++i) {
    try {
      if (!is_allowed(configurations[i], p)) continue;
      Plan plan = try_candidate(configurations[i], p, handle);
      if (plan.usable()) return plan;
    } catch (const NotSupported&) {
      // Only this candidate is left out.
    }
  }
  return {};
}

// The candidates of one kind of heuristics, which may have none.
std::vector<Descriptor> ask(const Graph& graph, cudnnBackendHeurMode_t mode, int64_t wanted) {
  try {
    return candidates(graph, mode, wanted);
  } catch (const NotSupported&) {
    return {};
  }
}

Plan make_plan(const Problem& p, cudnnHandle_t handle) {
  if (const auto* bug = known_bug(p)) {
    logging::debug("cuDNN is not used for a convolution: ", bug->reason);
    return {};
  }
  if (p.precision == Precision::kBf16)
    logging::debug("cuDNN computes float32 convolutions in tf32, more exactly than bf16 allows");
  try {
    const Graph graph = make_graph(p, handle);
    Plan plan = first_usable(ask(graph, CUDNN_HEUR_MODE_A, kFirstCandidates), 0, p, handle);
    if (!plan.usable())
      plan =
          first_usable(ask(graph, CUDNN_HEUR_MODE_A, kMostCandidates), kFirstCandidates, p, handle);
    if (!plan.usable())
      plan = first_usable(ask(graph, CUDNN_HEUR_MODE_FALLBACK, kMostCandidates), 0, p, handle);
    return plan;
  } catch (const NotSupported&) {
    return {};
  }
}

Descriptor variant_pack(const Plan& plan, const Pointers& pointers, void* workspace) {
  const int64_t ids[] = {kX, kW, kY, kB};
  void* const addresses[] = {pointers.x, pointers.w, pointers.y, pointers.b};
  const int64_t count = pointers.b != nullptr ? 4 : 3;
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  return pack;
}

// Replays of a captured step run the kernels of its plans, so these are never given back.
void keep_for_captured_steps(std::shared_ptr<const Plan> plan) {
  static std::mutex mutex;
  static auto* kept = new std::set<std::shared_ptr<const Plan>>;
  std::lock_guard lock(mutex);
  kept->insert(std::move(plan));
}

std::shared_ptr<const Plan> cached_plan(const Problem& problem, Handle& handle) {
  static std::mutex mutex;
  static auto* plans = new PlanCache<const Plan>(kMostPlans);
  PlanKey key;
  problem.describe(key);
  {
    std::lock_guard lock(mutex);
    if (auto known = plans->find(key.text())) return known;
  }
  auto made = std::make_shared<Plan>();
  {
    std::lock_guard lock(handle.mutex);
    gpu::RelaxedMode relaxed;
    *made = make_plan(problem, handle.native);
  }
  std::lock_guard lock(mutex);
  return plans->keep(key.text(), std::move(made));  // or that of a faster thread
}

}  // namespace

std::shared_ptr<const Plan> plan_of(const Problem& problem, Handle& handle) {
  std::shared_ptr<const Plan> plan = cached_plan(problem, handle);
  if (cuda::capture_id() != 0) [[unlikely]]
    keep_for_captured_steps(plan);
  return plan;
}

bool run_plan(const Plan& plan, const Pointers& pointers, Device device, Handle& handle) {
  StoragePtr workspace;
  try {
    workspace = gpu::scratch_memory(device, static_cast<size_t>(plan.workspace));
  } catch (const OutOfMemoryError&) {
    return false;
  }
  const cudaStream_t stream = gpu::companion_stream(device);
  try {
    const Descriptor pack = variant_pack(plan, pointers, workspace ? workspace->data : nullptr);
    std::lock_guard lock(handle.mutex);
    // An engine loads its kernels at its first run, which may be inside a captured step.
    gpu::RelaxedMode relaxed;
    CATENA_CUDNN_CHECK(cudnnSetStream(handle.native, stream));
    CATENA_CUDNN_CHECK(cudnnBackendExecute(handle.native, plan.native.native(), pack.native()));
  } catch (const NotSupported&) {
    // cuDNN checks a plan before its first launch. Refusing it only now is a bug of cuDNN or of
    // this file.
    char detail[512] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    fail<DeviceError>("cuDNN refused to run a plan that it had made: ", detail,
                      "; CATENA_PROVIDERS=cudnn:off computes without cuDNN");
  }
  return true;
}

}  // namespace catena::cudnn
