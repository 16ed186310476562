#include "backends/cudnn/plan.h"

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "backends/common/plan_cache.h"
#include "backends/cuda/companion.h"
#include "backends/cudnn/graph.h"
#include "backends/cudnn/known_bugs.h"
#include "backends/cudnn/make_plan.h"
#include "backends/cudnn/measure.h"
#include "backends/cudnn/plan_entry.h"
#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/core/stream.h"
#include "core/disk_cache.h"

namespace catena::cudnn {
namespace {

// The most plans that are kept.
constexpr size_t kMostPlans = 4096;

const DiskCache& disk_cache() {
  static const auto* cache = new DiskCache(cache_folder(), kPlanCache);
  return *cache;
}

// What decides about engines beside the problem. Parts of one GPU have its name, but fewer
// multiprocessors.
std::string describe_platform(Device device) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const DeviceProperties gpu = device_properties(device);
  return message("cudnn ", cudnnGetVersion(), " driver ", driver, " runtime ", runtime, " ",
                 gpu.model, " ", gpu.compute_capability, " ", gpu.multiprocessors, " ");
}

const std::string& platform_of(Device device) {
  static auto* platforms = new gpu::OncePerDevice<const std::string>;
  return platforms->of(device.index(), [&] { return new std::string(describe_platform(device)); });
}

// The plan of the problem: with the engine that an earlier process chose, which is on disk beside
// the kernels that it compiled (CATENA_CACHE_DIR), for this version of cuDNN, GPU and driver; else
// a new choice, which is stored. A folder that cannot be written costs time only. The caller holds
// the handle's lock; the GPU is the thread's current device.
Plan plan_by_disk(const Problem& p, Handle& handle) {
  PlanText text;
  p.describe_on_any_gpu(text);
  const std::string problem = platform_of(cuda_device(p.device)) + text.text();
  Plan plan;
  const auto make = [&]() -> std::string {
    MadePlan made = choose_plan(p, handle.native);
    plan = std::move(made.plan);
    return made.entry ? to_bytes(*made.entry, problem) : "";
  };
  const auto accept = [&](const std::string& bytes) {
    const std::optional<PlanEntry> entry = plan_entry_from(bytes, problem);
    std::optional<Plan> made = entry ? plan_of_entry(*entry, p, handle.native) : std::nullopt;
    if (made) plan = std::move(*made);
    return made.has_value();
  };
  bool chosen = false;
  disk_cache().get(hash128(problem), make, &chosen, accept);
  return plan;
}

Plan make_plan(const Problem& problem, Handle& handle) {
  if (const auto* bug = known_bug(problem)) {
    logging::debug("cuDNN is not used for a convolution: ", bug->reason);
    return {};
  }
  // Measurements wait for the stream, whose earlier work may need another rank, which may need the
  // lock of the handle or of the entry on disk. So that work ends before this thread holds either.
  if (is_measured(problem)) current_stream(cuda_device(problem.device)).synchronize();
  std::lock_guard lock(handle.mutex);
  gpu::RelaxedMode relaxed;
  return plan_by_disk(problem, handle);
}

Descriptor variant_pack(const Pointers& pointers, void* workspace) {
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
    if (auto known = plans->find(key)) return known;
  }
  auto made = std::make_shared<Plan>(make_plan(problem, handle));
  std::lock_guard lock(mutex);
  return plans->keep(key, std::move(made));  // or that of a faster thread
}

}  // namespace

std::shared_ptr<const Plan> plan_of(const Problem& problem, Handle& handle) {
  std::shared_ptr<const Plan> plan = cached_plan(problem, handle);
  if (cuda::capture_id() != 0) [[unlikely]]
    keep_for_captured_steps(plan);
  return plan;
}

void enqueue_plan(const Plan& plan, const Pointers& pointers, void* workspace, cudaStream_t stream,
                  cudnnHandle_t handle) {
  const Descriptor pack = variant_pack(pointers, workspace);
  // An engine loads its kernels at its first run, which may be inside a captured step.
  gpu::RelaxedMode relaxed;
  CATENA_CUDNN_CHECK(cudnnSetStream(handle, stream));
  CATENA_CUDNN_CHECK(cudnnBackendExecute(handle, plan.native.native(), pack.native()));
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
    std::lock_guard lock(handle.mutex);
    enqueue_plan(plan, pointers, workspace ? workspace->data : nullptr, stream, handle.native);
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
