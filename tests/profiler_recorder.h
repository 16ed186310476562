// Writes down the profiler ranges of a thread: "outer(inner())".
#pragma once

#include <string>

#include "catena/core/profiler_range.h"

namespace catena::testing {

// Records from construction to destruction what the constructing thread does; ranges are then off.
class RecordedRanges {
 public:
  RecordedRanges() {
    text_of_thread().clear();
    static const ProfilerHooks hooks{
        [](const char* name) { text_of_thread().append(name).append("("); },
        []() noexcept { text_of_thread().append(")"); }};
    set_profiler_hooks(&hooks);
  }
  ~RecordedRanges() { set_profiler_hooks(nullptr); }
  RecordedRanges(const RecordedRanges&) = delete;
  RecordedRanges& operator=(const RecordedRanges&) = delete;

  const std::string& text() const { return text_of_thread(); }
  // Of a thread that did not construct one.
  static std::string& text_of_thread() {
    thread_local std::string text;
    return text;
  }
};

}  // namespace catena::testing
