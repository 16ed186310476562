// Calls of the host by time: those whose work a device does.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/trace_record.h"

namespace catena::tracing {

class HostCalls {
 public:
  struct Call {
    std::string name;  // as the thread's texts have it
    int64_t bytes = -1;
  };
  // The functions, backwards, updates and calls of communicators of one thread: its events in the
  // order of sorted_events(), and its texts.
  void add_thread(const std::vector<EventRecord>& events, const std::vector<std::string>& texts);
  // The innermost call at that time; null when there is none, and when several threads are in one,
  // as it is then not known whose the work is.
  const Call* at(int64_t time) const;

 private:
  // From a time on, until that of the next; -1: no call.
  using Changes = std::vector<std::pair<int64_t, int>>;

  std::vector<Call> calls_;
  std::vector<Changes> threads_;
};

}  // namespace catena::tracing
