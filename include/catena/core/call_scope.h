// Names of what a thread does, for memory profiles and traces.
#pragma once

#include <atomic>
#include <string>

#include "catena/core/memory.h"

namespace catena {
namespace detail {

extern std::atomic<int> memory_profiles;  // that live, and traces
void enter_call(const char* name);
void leave_call() noexcept;
// The names of the scopes that the calling thread is in, outermost first, joined by '/';
// "(unnamed)" outside of all.
std::string call_path();
// Notes a fresh storage in all profiles.
void observe_allocation(Storage& storage);

}  // namespace detail

// Names what the calling thread does, for memory profiles and traces. The text must outlive the
// scope. Costs one load while there is no profile.
class CallScope {
 public:
  explicit CallScope(const char* name)
      : entered_(detail::memory_profiles.load(std::memory_order_relaxed) != 0) {
    if (entered_) [[unlikely]]
      detail::enter_call(name);
  }
  ~CallScope() {
    if (entered_) [[unlikely]]
      detail::leave_call();
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const bool entered_;
};

}  // namespace catena
