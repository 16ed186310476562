#include "backends/cudnn/plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "backends/cuda/companion.h"
#include "backends/cudnn/make_plan.h"
#include "backends/cudnn/plan_entry.h"
#include "catena/core/config.h"
#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "catena/core/stream.h"
#include "core/disk_cache.h"

namespace catena::cudnn {
namespace {

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

// From disk, or a new choice, which is stored beside the kernels that it compiled. A folder that
// cannot be written costs time only. The caller holds the handle's lock.
Plan plan_by_disk(const std::string& problem, const PlanRequest& request, cudnnHandle_t handle) {
  Plan plan;
  const auto make = [&]() -> std::string {
    MadePlan made = choose_plan(request, handle);
    plan = std::move(made.plan);
    return made.entry ? to_bytes(*made.entry, problem) : "";
  };
  const auto accept = [&](const std::string& bytes) {
    const std::optional<PlanEntry> entry = plan_entry_from(bytes, problem);
    std::optional<Plan> made = entry ? plan_of_entry(*entry, request, handle) : std::nullopt;
    if (made) plan = std::move(*made);
    return made.has_value();
  };
  bool chosen = false;
  disk_cache().get(hash128(problem), make, &chosen, accept);
  plan.cleared = request.cleared;
  return plan;
}

constexpr size_t kMostBindings = 16;

Descriptor variant_pack(std::span<const Binding> bindings, void* workspace) {
  int64_t ids[kMostBindings];
  const void* addresses[kMostBindings];
  for (size_t i = 0; i < bindings.size(); ++i) {
    ids[i] = bindings[i].id;
    addresses[i] = bindings[i].address;
  }
  const auto count = static_cast<int64_t>(bindings.size());
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

}  // namespace

std::shared_ptr<const Plan> Plans::find_or_make(const PlanKey& problem,
                                                const std::function<Plan()>& make) {
  {
    std::lock_guard lock(mutex_);
    if (auto known = plans_.find(problem)) return known;
  }
  auto made = std::make_shared<Plan>(make());
  std::lock_guard lock(mutex_);
  return plans_.keep(problem, std::move(made));  // or that of a faster thread
}

std::shared_ptr<const Plan> Plans::get(const PlanKey& problem, const std::function<Plan()>& make) {
  std::shared_ptr<const Plan> plan = find_or_make(problem, make);
  if (cuda::capture_id() != 0) [[unlikely]]
    keep_for_captured_steps(plan);
  return plan;
}

Plan stored_plan(const PlanText& problem, const PlanRequest& request, Device device,
                 Handle& handle) {
  // Measurements wait for the stream, whose earlier work may need another rank, which may need the
  // lock of the handle or of the entry on disk. So that work ends before this thread holds either.
  if (request.times) current_stream(device).synchronize();
  std::lock_guard lock(handle.mutex);
  gpu::RelaxedMode relaxed;
  return plan_by_disk(platform_of(device) + problem.text(), request, handle.native);
}

int64_t workspace_limit() {
  return static_cast<int64_t>(std::min<size_t>(config().max_workspace_size, INT64_MAX));
}

void enqueue_plan(const Plan& plan, std::span<const Binding> bindings, void* workspace,
                  cudaStream_t stream, cudnnHandle_t handle) {
  const Descriptor pack = variant_pack(bindings, workspace);
  // An engine loads its kernels at its first run, which may be inside a captured step.
  gpu::RelaxedMode relaxed;
  CATENA_CUDNN_CHECK(cudnnSetStream(handle, stream));
  CATENA_CUDNN_CHECK(cudnnBackendExecute(handle, plan.native.native(), pack.native()));
}

bool run_plan(const Plan& plan, std::span<const Binding> bindings, Device device, Handle& handle) {
  StoragePtr workspace;
  try {
    workspace = gpu::scratch_memory(device, static_cast<size_t>(plan.workspace));
  } catch (const OutOfMemoryError&) {
    return false;
  }
  const cudaStream_t stream = gpu::companion_stream(device);
  if (plan.cleared && workspace)
    backend(device.type())
        .fill_bytes(workspace->data, 0, static_cast<size_t>(plan.workspace),
                    current_stream(device));
  try {
    std::lock_guard lock(handle.mutex);
    enqueue_plan(plan, bindings, workspace ? workspace->data : nullptr, stream, handle.native);
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
