#include "backends/cuda/trace/tracer.h"

#include "backends/cuda/trace/cupti.h"
#include "catena/core/device_trace.h"

#ifdef CATENA_HAS_CUPTI
#include <cuda_runtime_api.h>
#include <cupti_driver_cbid.h>
#include <time.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/streams.h"
#endif

namespace catena::gpu {
namespace {

#ifdef CATENA_HAS_CUPTI

constexpr size_t kBufferBytes = size_t(4) << 20;
constexpr size_t kBufferAlignment = 64;  // CUPTI asks for 8
constexpr uint32_t kFlushEveryMs = 1000;
// How long the end of a trace waits for work of the GPUs, and then for CUPTI. A kernel that hangs,
// for which the trace may have been made, must not keep it from being written.
constexpr auto kWaitForWork = std::chrono::seconds(10);
constexpr auto kWaitForCupti = std::chrono::seconds(5);
constexpr auto kHurry = std::chrono::seconds(1);  // for either

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME};

// Those of the runtime cannot be chosen: single ones that are enabled once a context is there give
// no records (CUPTI 13.0).
constexpr CUpti_CallbackId kDriverCalls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch};

// What CUPTI's callbacks fill. Never destroyed: they may come while static objects go.
struct Collected {
  std::mutex mutex;
  std::unique_ptr<Activities> activities;  // null: nothing is being recorded
  size_t lost = 0;                         // records for which CUPTI had no buffer
};
Collected& collected() {
  static auto* const instance = new Collected;
  return *instance;
}

uint64_t CUPTIAPI clock_of_traces() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                          size_t valid_bytes) {
  Collected& into = collected();
  const std::lock_guard lock(into.mutex);
  CUpti_Activity* record = nullptr;
  while (into.activities && valid_bytes > 0 &&
         cupti().next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
    into.activities->add(*record);
  size_t lost = 0;
  if (cupti().dropped_records(context, stream, &lost) == CUPTI_SUCCESS) into.lost += lost;
  std::free(buffer);
}

// Whether `work` ended in that time. It goes on in a thread of its own if it did not.
bool ends_within(std::chrono::seconds limit, std::function<void()> work) {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const auto state = std::make_shared<State>();
  std::thread([state, work = std::move(work)] {
    work();
    const std::lock_guard lock(state->mutex);
    state->done = true;
    state->changed.notify_all();
  }).detach();
  std::unique_lock lock(state->mutex);
  return state->changed.wait_for(lock, limit, [&] { return state->done; });
}

// All that the GPUs were asked for so far, but for those of which a graph is captured.
void wait_for_work() {
  for (int index = 0; index < device_count(); ++index)
    if (is_used(index)) synchronize_unless_captured(index);
}

class CuptiTracer final : public tracing::DeviceTracer {
 public:
  void start(size_t spans_per_track) noexcept override;
  tracing::DeviceActivity finish(bool patient) noexcept override;

 private:
  bool check(CUptiResult result, const char* call);
  void watch_calls(bool on);

  bool registered_ = false;
  std::string problem_;
};

// False, with the first problem kept, when a call failed.
bool CuptiTracer::check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = nullptr;
  cupti().result_string(result, &text);
  if (problem_.empty())
    problem_ = std::string("CUPTI: ") + call + ": " + (text ? text : "unknown error");
  return false;
}

// By these a span is found to belong to a step. Without them spans go by their own time, so a
// failure is no problem worth a word.
void CuptiTracer::watch_calls(bool on) {
  for (const CUpti_CallbackId call : kDriverCalls) cupti().enable_driver_call(call, on);
}

void CuptiTracer::start(size_t spans_per_track) noexcept {
  problem_ = cupti().error.empty() ? "" : "CUPTI cannot be loaded: " + cupti().error;
  if (!problem_.empty()) return;
  {
    Collected& into = collected();
    const std::lock_guard lock(into.mutex);
    into.activities = std::make_unique<Activities>(spans_per_track);
    into.lost = 0;
  }
  // Once a process, and before any kind is watched: the times are then those of the trace.
  if (!registered_) {
    registered_ = check(cupti().register_timestamp(clock_of_traces), "timestamps") &&
                  check(cupti().register_callbacks(give_buffer, take_buffer), "buffers");
    if (!registered_) return;
  }
  for (const CUpti_ActivityKind kind : kKinds) check(cupti().enable(kind), "enable");
  watch_calls(true);
  cupti().flush_period(kFlushEveryMs);
}

tracing::DeviceActivity CuptiTracer::finish(bool patient) noexcept {
  tracing::DeviceActivity activity;
  if (registered_) {
    if (!ends_within(patient ? kWaitForWork : kHurry, wait_for_work) && problem_.empty())
      problem_ = "work of a GPU did not end; what was running is missing";
    const bool flushed = ends_within(patient ? kWaitForCupti : kHurry, [] {
      for (const CUpti_ActivityKind kind : kKinds) cupti().disable(kind);
      cupti().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    });
    if (!flushed && problem_.empty())
      problem_ = "CUPTI did not hand over what it has; the last spans are missing";
    if (flushed) watch_calls(false);
  }
  Collected& from = collected();
  const std::lock_guard lock(from.mutex);
  if (from.activities) activity = std::exchange(from.activities, nullptr)->take();
  if (from.lost > 0 && problem_.empty())
    problem_ = "CUPTI has dropped " + std::to_string(from.lost) + " records";
  activity.problem = problem_;
  return activity;
}

#else

constexpr const char* kNoCupti = "this build of catena has no CUPTI: its header was not installed";

class CuptiTracer final : public tracing::DeviceTracer {
 public:
  void start(size_t) noexcept override {}
  tracing::DeviceActivity finish(bool) noexcept override { return {{}, {}, kNoCupti}; }
};

#endif

}  // namespace

void register_tracer() {
  static auto* const tracer = new CuptiTracer;  // lives as long as the process
  tracing::add_device_tracer(*tracer);
}

}  // namespace catena::gpu
