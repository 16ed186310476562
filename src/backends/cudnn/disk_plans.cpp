#include "backends/cudnn/disk_plans.h"

#include <string>

#include "backends/cuda/companion.h"
#include "backends/cudnn/make_plan.h"
#include "backends/cudnn/plan_entry.h"
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

}  // namespace

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

}  // namespace catena::cudnn
