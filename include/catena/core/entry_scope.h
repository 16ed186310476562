// The name in front of error messages: that of the library function that the user called.
//
//   Array cross(const Array& a, const Array& b, Axis axis) {
//     const EntryScope call("cross");
//     ...                                   // errors from here on begin with "cross: "
//   }
//
// Functions are made of others; only the outermost scope of a thread counts. fail() reads the name
// when something is wrong; on the good path a scope costs one thread-local store, a nested one a
// load.
#pragma once

#include "catena/core/call_scope.h"

namespace catena {
namespace detail {

// The outermost entry of this thread, or null. Plug-ins and programs share the library's own. Not
// of the model initial-exec, which is faster by a nanosecond: a program that opens the library
// while it runs (a Python module) has no room left for its thread-local data then.
extern constinit thread_local const char* entry;

}  // namespace detail

// Stands first in a public function and names it in the errors about arguments that fail() throws
// below it (see kNamesEntry in error.h) and in memory profiles. The text must outlive the scope.
class EntryScope {
 public:
  explicit EntryScope(const char* name) : outermost_(detail::entry == nullptr) {
    if (!outermost_) return;
    profiled_ = detail::memory_profiles.load(std::memory_order_relaxed) != 0;
    if (profiled_) [[unlikely]]
      detail::enter_call(name);
    detail::entry = name;
  }
  ~EntryScope() {
    if (!outermost_) return;
    detail::entry = nullptr;
    if (profiled_) [[unlikely]]
      detail::leave_call();
  }
  EntryScope(const EntryScope&) = delete;
  EntryScope& operator=(const EntryScope&) = delete;

 private:
  const bool outermost_;
  bool profiled_ = false;
};

// The name of the outermost EntryScope of this thread, "this call" outside of all.
inline const char* called_function() {
  return detail::entry == nullptr ? "this call" : detail::entry;
}

// Around calls of functions that the user gave: their errors name what they call themselves.
class CallbackScope {
 public:
  CallbackScope() : entry_(detail::entry) { detail::entry = nullptr; }
  ~CallbackScope() { detail::entry = entry_; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  const char* const entry_;
};

}  // namespace catena
