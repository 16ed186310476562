// Markers of tests that need GPUs, for GoogleTest. A separate header, so that it can be included
// where `testing` must go on meaning GoogleTest's namespace.
#pragma once

#include <string>

namespace catena {

// Why a test that needs `count` GPUs cannot run: the machine has fewer, or CATENA_TEST_DEVICES
// names no GPU, which leaves out all such tests. Empty if it can run.
std::string missing_test_gpus(int count = 1);
// Why a test that needs cuDNN cannot run: missing_test_gpus(), the plug-in does not load, or the
// settings leave it out. Empty if it can run.
std::string missing_test_cudnn();

}  // namespace catena

// First in a test that needs a GPU, or several: skips it, saying why. 0 needs none. The including
// program brings GoogleTest.
#define CATENA_NEEDS_GPUS(count)                                                        \
  if (const std::string missing = ::catena::missing_test_gpus(count); !missing.empty()) \
  GTEST_SKIP() << "SKIPPED: " << missing
// CATENA_NEEDS_GPUS(1).
#define CATENA_NEEDS_GPU() CATENA_NEEDS_GPUS(1)
// The same in a test that needs a GPU with cuDNN.
#define CATENA_NEEDS_CUDNN()                                                        \
  if (const std::string missing = ::catena::missing_test_cudnn(); !missing.empty()) \
  GTEST_SKIP() << "SKIPPED: " << missing
