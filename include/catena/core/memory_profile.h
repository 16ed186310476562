// Record of allocations by the names of the calls that hold the memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catena/core/device.h"
#include "catena/core/memory.h"

namespace catena {

// Records every allocation of all threads from construction to destruction (host and device memory
// of arrays, also through allocator hooks), under the path of the calls that made it: the names of
// the CallScopes that the thread was in, outermost first, joined by '/'. Library functions name
// themselves. Profiles may nest; each sees what is allocated while it lives, and follows it to its
// end. While no profile exists, an allocation pays one load.
class MemoryProfile {
 public:
  MemoryProfile();
  ~MemoryProfile();
  MemoryProfile(const MemoryProfile&) = delete;
  MemoryProfile& operator=(const MemoryProfile&) = delete;

  // The allocations of one call.
  struct Entry {
    std::string call;  // "(unnamed)" outside of all scopes
    Device device;
    size_t held = 0;           // bytes that are alive now
    size_t peak = 0;           // the most that were alive at once
    size_t total = 0;          // ever allocated
    uint64_t blocks = 0;       // that are alive now
    uint64_t allocations = 0;  // ever made
  };
  // What holds most first; equal ones by total, then by name.
  std::vector<Entry> entries() const;
  // A table of the entries with one line each.
  std::string report() const;

  struct Ledger;  // the library's own

 private:
  std::shared_ptr<Ledger> ledger_;
};

namespace detail {

extern std::atomic<int> memory_profiles;  // that live
void enter_call(const char* name);
void leave_call() noexcept;
// Notes a fresh storage in all profiles.
void observe_allocation(Storage& storage);

}  // namespace detail

// Names what the calling thread does, for memory profiles. The text must outlive the scope. Costs
// one load while there is no profile.
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
