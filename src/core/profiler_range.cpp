#include "catena/core/profiler_range.h"

#include "catena/core/backend.h"
#include "core/environment.h"
#include "core/trace_record.h"

namespace catena {

namespace {

// NVTX, which the cuda back end knows; without its plug-in there is no time line.
void begin_nvtx(const char* name) {
  if (Backend* b = find_backend(DeviceType::kCuda)) b->range_push(name);
}
void end_nvtx() noexcept {
  if (Backend* b = find_backend(DeviceType::kCuda)) b->range_pop();
}
constexpr ProfilerHooks kNvtx{begin_nvtx, end_nvtx};

const ProfilerHooks* hooks_from_environment() {
  return switch_from_environment("CATENA_NVTX", false) ? &kNvtx : nullptr;
}

}  // namespace

std::atomic<const ProfilerHooks*> detail::profiler_hooks{hooks_from_environment()};

namespace {
// Here, as it must come after these hooks, which it takes over.
struct TraceOfProgram {
  TraceOfProgram() { tracing::start_from_environment(); }
} const trace_of_program;
}  // namespace

void ProfilerRange::begin(const char* name) {
  // The constructor's load was relaxed; this one sees what the hooks point to, or null again.
  hooks_ = detail::profiler_hooks.load(std::memory_order_acquire);
  if (hooks_) hooks_->begin(name);
}

}  // namespace catena
