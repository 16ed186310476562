// NCCL in tests: ranks are threads of this process, one GPU each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "catena/comm/factory.h"
#include "catena/core/plugin.h"
#include "catena/testing_markers.h"

namespace catena::comm_suite {

// Why NCCL cannot be tested here; "" when it can.
inline std::string why_no_nccl() {
  if (const std::string reason = unavailable_reason(DeviceType::kCuda); !reason.empty())
    return reason;
  return load_plugin("nccl");
}

// Skips the test, saying why, unless NCCL has that many GPUs.
#define CATENA_NEEDS_NCCL(gpus)                                                        \
  if (const std::string reason = ::catena::comm_suite::why_no_nccl(); !reason.empty()) \
    GTEST_SKIP() << "SKIPPED: no NCCL: " << reason;                                    \
  CATENA_NEEDS_GPUS(gpus)

inline void run_nccl(int ranks, const std::function<void(Communicator&)>& fn, double timeout = 60) {
  comm::ThreadsOptions options;
  for (int r = 0; r < ranks; ++r) options.devices.push_back(cuda_device(r));
  options.timeout = timeout;
  options.implementation = "nccl";
  comm::run_threads(ranks, fn, options);
}

inline int most_ranks() { return std::min(8, device_count(DeviceType::kCuda)); }

}  // namespace catena::comm_suite
