// Kernels that fail, GPUs that are full, and the end of the process. Each in a process of its own,
// which the test starts.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "catena/array/kernel.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "error_text.h"
#include "gpu.h"

namespace catena {
namespace {

const Device kGpu = cuda_device(0);

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Ends the process: 3 if the error that `body` throws has `wanted`, and not `unwanted`.
[[noreturn]] void exit_with_error_of(const std::function<void()>& body, const char* wanted,
                                     const char* unwanted) {
  const std::string text = error_of<DeviceError>(body);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(holds(text, wanted) && !holds(text, unwanted) ? 3 : 4);
}

void run_bad_kernel() {
  const Array x = ones({32}, {Dtype::kFloat32, kGpu});
  const RawKernel good("extern \"C\" __global__ void good_kernel(float* x) { x[0] = 1; }",
                       "good_kernel");
  const RawKernel bad(
      "extern \"C\" __global__ void bad_kernel(float* x) { x[1ull << 44] = threadIdx.x; }",
      "bad_kernel");
  good({1}, {32}, {x});
  current_stream(kGpu).synchronize();
  bad({1}, {32}, {x});
  for (int i = 0; i < 1000; ++i) sum(x + 1);  // an innocent call is the first that hears of it
  synchronize(kGpu);
}

TEST(CudaFaults, NameTheUserKernelsSinceTheLastWait) {
  CATENA_NEEDS_GPUS(1);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_error_of(run_bad_kernel, "the last one first: bad_kernel", "good_kernel"),
              ::testing::ExitedWithCode(3), "CUDA_LAUNCH_BLOCKING=1");
}

TEST(CudaFaults, OfALaunchThatWaitsAreThatKernels) {
  CATENA_NEEDS_GPUS(1);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
        exit_with_error_of(run_bad_kernel, "bad_kernel", "may have failed");
      },
      ::testing::ExitedWithCode(3), "the kernel launched last has failed");
}

// The thread's next call of CUDA fails while the driver is unloaded.
TEST(CudaExit, OfAProgramWithAThreadAtWorkHasItsCode) {
  CATENA_NEEDS_GPUS(1);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto work = [] {
    const DeviceScope scope(kGpu);
    for (;;) {
      const Array x = ones({1000}) * 2;
      if (sum(x).item<double>() != 2000) std::abort();
    }
  };
  EXPECT_EXIT(
      {
        std::thread(work).detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        std::exit(5);
      },
      ::testing::ExitedWithCode(5), "^$");
}

TEST(CudaMemory, ErrorsSayWhoHasIt) {
  CATENA_NEEDS_GPUS(1);
  if (dlopen("libnvidia-ml.so.1", RTLD_NOW) == nullptr)
    GTEST_SKIP() << "SKIPPED: needs NVML, libnvidia-ml.so.1, which comes with the driver";
  expect_contains(error_of<OutOfMemoryError>([] {
                    empty({int64_t{1} << 50}, {Dtype::kUInt8, kGpu});
                  }),
                  {"out of memory on cuda:0", "; cuda:0 has ", " are free"});
}

}  // namespace
}  // namespace catena
