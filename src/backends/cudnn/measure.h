// Times of plans, for CATENA_CONVOLUTION_TUNE=1.
#pragma once

#include <span>
#include <vector>

#include "backends/cudnn/convolution_plan.h"

namespace catena::cudnn {

// Whether the thread measures plans of the problem: tuned ones, but not in a capture, which cannot
// wait.
bool is_measured(const Problem& problem);

// Milliseconds of one run of each plan of the problem; infinity for a plan that fails. The plans
// run on the thread's current stream of the GPU, on scratch memory only. Waits for the stream: the
// thread must not be capturing a graph. Throws
// OutOfMemoryError where the scratch memory does not fit. The caller holds the handle's lock.
std::vector<double> measure(std::span<const Plan> plans, const Problem& problem,
                            cudnnHandle_t handle);

}  // namespace catena::cudnn
