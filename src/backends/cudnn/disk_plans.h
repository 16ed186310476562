// Plans that earlier processes chose, beside the kernels that they compiled (CATENA_CACHE_DIR).
#pragma once

#include "backends/cudnn/handle.h"
#include "backends/cudnn/plan.h"
#include "backends/cudnn/problem.h"

namespace catena::cudnn {

// The plan of the problem: with the engine that is on disk for it, for this version of cuDNN, GPU
// and driver, else a new choice, which is stored. A folder that cannot be written costs time only.
// The caller holds the handle's lock; the GPU is the thread's current device.
Plan plan_by_disk(const Problem& problem, Handle& handle);

}  // namespace catena::cudnn
