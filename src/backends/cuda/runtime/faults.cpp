#include "backends/cuda/runtime/faults.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/cuda_check.h"

namespace catena::gpu {
namespace {

struct UserKernel {
  const std::string* name;
  int device;
  cudaStream_t stream;
  bool operator==(const UserKernel&) const = default;
};

constexpr size_t kRemembered = 8;

struct UserKernels {
  std::mutex mutex;
  std::vector<UserKernel> last;  // at most kRemembered, the newest at the end
  std::atomic<bool> any{false};
};
UserKernels& user_kernels() {
  static auto* const one = new UserKernels;  // used at exit
  return *one;
}

template <class Condition>
void forget_if(Condition condition) noexcept {
  UserKernels& all = user_kernels();
  if (!all.any.load(std::memory_order_relaxed)) [[likely]]
    return;
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.last, condition);
  all.any.store(!all.last.empty(), std::memory_order_relaxed);
}

std::string list_user_kernels(int device) {
  UserKernels& all = user_kernels();
  const std::lock_guard lock(all.mutex);
  std::string names;
  for (auto kernel = all.last.rbegin(); kernel != all.last.rend(); ++kernel)
    if (kernel->device == device) names += message(names.empty() ? "" : ", ", *kernel->name);
  return names;
}

// Errors after which the GPU is lost to the process. The driver's have the same numbers.
bool is_fault(int error) {
  constexpr cudaError_t kFaults[] = {cudaErrorECCUncorrectable,
                                     cudaErrorNvlinkUncorrectable,
                                     cudaErrorIllegalAddress,
                                     cudaErrorLaunchTimeout,
                                     cudaErrorAssert,
                                     cudaErrorHardwareStackError,
                                     cudaErrorIllegalInstruction,
                                     cudaErrorMisalignedAddress,
                                     cudaErrorInvalidAddressSpace,
                                     cudaErrorInvalidPc,
                                     cudaErrorLaunchFailure};
  return std::find(std::begin(kFaults), std::end(kFaults), error) != std::end(kFaults);
}

bool launches_block() {
  const char* setting = std::getenv("CUDA_LAUNCH_BLOCKING");
  return setting != nullptr && *setting != '\0' && *setting != '0';
}

std::atomic<bool> g_exits{false};
std::thread::id g_exiting_thread;  // once g_exits is set

}  // namespace

void note_user_kernel(const std::string& name, int device, cudaStream_t stream) {
  if (thread_capture()) return;  // recorded, not launched
  UserKernels& all = user_kernels();
  const UserKernel kernel{&name, device, stream};
  const std::lock_guard lock(all.mutex);
  std::erase(all.last, kernel);
  if (all.last.size() == kRemembered) all.last.erase(all.last.begin());
  all.last.push_back(kernel);
  all.any.store(true, std::memory_order_relaxed);
}

void forget_user_kernels(cudaStream_t stream) noexcept {
  forget_if([stream](const UserKernel& kernel) { return kernel.stream == stream; });
}

void forget_user_kernels(int device) noexcept {
  forget_if([device](const UserKernel& kernel) { return kernel.device == device; });
}

std::string describe_fault(int error) {
  if (!is_fault(error)) return {};
  int device = 0;
  cudaGetDevice(&device);
  const std::string names = list_user_kernels(device);
  std::string text =
      launches_block() ? "; launches wait for their kernels (CUDA_LAUNCH_BLOCKING), so the kernel "
                         "launched last has failed"
                       : message("; work that was queued on cuda:", device,
                                 " before may have failed, not this call: a GPU runs behind the "
                                 "program");
  text += names.empty() ? message("; no user kernel was launched since the last wait for it")
                        : message(
                              "; user kernels launched since the last wait for it, the last "
                              "one first: ",
                              names);
  if (!launches_block())
    text +=
        ". CUDA_LAUNCH_BLOCKING=1 has the error reported at the launch that caused it, and "
        "compute-sanitizer names the address";
  return text + ". This process cannot use the GPU any more";
}

void watch_exit() {
  static const int watched = std::atexit([] {
    g_exiting_thread = std::this_thread::get_id();
    g_exits.store(true, std::memory_order_release);
  });
  static_cast<void>(watched);
}

void let_process_end(int error) noexcept {
  // A handler of the driver's may have come before watch_exit's; exit() is mostly the main
  // thread's.
  const bool others_exit = g_exits.load(std::memory_order_acquire)
                               ? g_exiting_thread != std::this_thread::get_id()
                               : error == cudaErrorCudartUnloading && gettid() != getpid();
  if (others_exit) std::this_thread::sleep_for(std::chrono::seconds(5));
}

}  // namespace catena::gpu
