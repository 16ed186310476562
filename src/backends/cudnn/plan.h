// Plans: engines of cuDNN that were chosen for a problem, ready to run.
#pragma once

#include <memory>

#include "backends/cudnn/descriptor.h"
#include "backends/cudnn/handle.h"
#include "backends/cudnn/problem.h"
#include "catena/core/device.h"

namespace catena::cudnn {

struct Plan {
  Descriptor native;  // empty: cuDNN has no engine that may be used
  int64_t workspace = 0;
  bool usable() const { return bool(native); }
};

// The addresses of a call.
struct Pointers {
  void* x;
  void* w;
  void* b;  // null unless the problem has a bias
  void* y;
};

// The plan of the problem. The first call of any thread makes it, or takes the engine that an
// earlier process chose (CATENA_CACHE_DIR), outside the graph that the thread may be capturing. A
// tuned problem's plan is measured then, which waits for the thread's current stream. The GPU is
// the thread's current device. The last thousands of plans are kept.
std::shared_ptr<const Plan> plan_of(const Problem& problem, Handle& handle);

// Enqueues the plan on the stream, with `workspace` as its scratch memory. The caller holds the
// handle's lock. Throws NotSupported, with nothing enqueued, if cuDNN refuses to run the plan.
void enqueue_plan(const Plan& plan, const Pointers& pointers, void* workspace, cudaStream_t stream,
                  cudnnHandle_t handle);

// Enqueues the plan on the current stream of the device. Returns false, with nothing enqueued, if
// there is no memory for its workspace.
bool run_plan(const Plan& plan, const Pointers& pointers, Device device, Handle& handle);

}  // namespace catena::cudnn
