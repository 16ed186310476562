// Named ranges on a profiler's time line: Variable::backward, Optimizer::update and each call of a
// communicator are in one. Off unless CATENA_NVTX=1, and then one load of an atomic pointer.
#pragma once

#include <atomic>

namespace catena {

// What a range calls when it begins and ends, on the thread that it is on. Of one thread the last
// that began ends first.
struct ProfilerHooks {
  void (*begin)(const char* name);
  void (*end)() noexcept;
};

namespace detail {
extern std::atomic<const ProfilerHooks*> profiler_hooks;
}

// Turns ranges on, for all threads; null turns them off. A range that has begun ends with the hooks
// that it began with, so these must live on. At start: NVTX's when CATENA_NVTX=1, else null.
inline void set_profiler_hooks(const ProfilerHooks* hooks) {
  detail::profiler_hooks.store(hooks, std::memory_order_release);
}

// A range from construction to destruction, also by an exception. The name is not copied.
class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name) {
    if (detail::profiler_hooks.load(std::memory_order_relaxed)) [[unlikely]]
      begin(name);
  }
  ~ProfilerRange() {
    if (hooks_) [[unlikely]]
      hooks_->end();
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  void begin(const char* name);

  const ProfilerHooks* hooks_ = nullptr;
};

}  // namespace catena
