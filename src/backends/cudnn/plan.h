// Plans in memory and on disk, and their runs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "backends/common/plan_cache.h"
#include "backends/cudnn/handle.h"
#include "backends/cudnn/plan_request.h"
#include "catena/core/device.h"
#include "catena/core/log.h"

namespace catena::cudnn {

// The plans of one family of problems. The last thousands are kept.
class Plans {
 public:
  // The plan of a problem; that of make() at its first use by any thread. What a captured step uses
  // is never given back, as replays run its kernels.
  std::shared_ptr<const Plan> get(const PlanKey& problem, const std::function<Plan()>& make);

 private:
  std::shared_ptr<const Plan> find_or_make(const PlanKey& problem,
                                           const std::function<Plan()>& make);

  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  PlanCache<const Plan> plans_{kMost};
};

// The plan of a request: with the engine that an earlier process chose for the same problem
// (CATENA_CACHE_DIR), else with a new choice, outside the graph that the thread may be capturing.
// A request with times waits for the thread's current stream. The GPU is the thread's current
// device.
Plan stored_plan(const PlanText& problem, const PlanRequest& request, Device device,
                 Handle& handle);

// The plan of a problem of the family: request_of() says what it is made for; unusable where the
// problem meets a known bug (known_bugs.h). Plans belong to one GPU, choices of engines to all of
// its kind. The GPU is the thread's current device.
template <class Problem, class RequestOf>
std::shared_ptr<const Plan> plan_in(Plans& family, const Problem& problem, Handle& handle,
                                    const RequestOf& request_of) {
  PlanKey key;
  problem.describe(key);
  key << problem.device;
  return family.get(key, [&]() -> Plan {
    if (const auto* bug = known_bug(problem)) {
      logging::debug("cuDNN is not used: ", bug->reason);
      return {};
    }
    PlanText text;
    problem.describe(text);
    return stored_plan(text, request_of(), cuda_device(problem.device), handle);
  });
}

// Bytes of scratch memory that a plan may use at most.
int64_t workspace_limit();

// A tensor of the graph in a call; of one that is passed by value, the address on the host.
struct Binding {
  int64_t id;
  const void* address;
};

// Enqueues the plan on the stream, with `workspace` as its scratch memory. The caller holds the
// handle's lock. Throws NotSupported, with nothing enqueued, if cuDNN refuses to run the plan.
void enqueue_plan(const Plan& plan, std::span<const Binding> bindings, void* workspace,
                  cudaStream_t stream, cudnnHandle_t handle);

// Enqueues the plan on the current stream of the device. Returns false, with nothing enqueued, if
// there is no memory for its workspace.
bool run_plan(const Plan& plan, std::span<const Binding> bindings, Device device, Handle& handle);

}  // namespace catena::cudnn
