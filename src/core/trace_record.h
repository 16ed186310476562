// Record of a trace until it is written: events of threads, and what is said of the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catena/core/device_trace.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/trace.h"

namespace catena::tracing {

// Times in nanoseconds since the start. Texts are numbers into ThreadRecord::texts.
struct EventRecord {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = -1;
  int32_t peer = -1;
  uint32_t name = 0;
  uint32_t serves = 0;
  Category category = Category::kRange;
  bool open = false;  // it had not ended when the trace did
};

static_assert(sizeof(EventRecord) == 40, "trace.h says so");

// The events of one thread, which adds to them; whoever writes the trace reads them.
class ThreadRecord {
 public:
  explicit ThreadRecord(int number) : number_(number) {}

  // Forgets what was recorded for an earlier trace.
  void enter_session(uint64_t session, size_t limit);
  uint64_t session() const { return session_; }
  void begin(std::string_view name, Category category, int64_t now);
  void describe(std::string_view name, Category category, const Details& details);
  // The end of the innermost range; it is kept if it began in this session and `recording` holds.
  void end(int64_t now, bool recording);
  void set_name(std::string_view name) { name_ = name; }
  void forget_events();

  // In the order in which they began; the open ones end `now`.
  std::vector<EventRecord> sorted_events(int64_t now) const;
  const std::vector<std::string>& texts() const { return texts_; }
  uint64_t dropped() const { return dropped_; }
  int number() const { return number_; }
  std::string name() const;

  ForkMutex mutex;                // held around each of the above
  std::atomic<bool> owned{true};  // its thread lives

 private:
  struct OpenRange {
    EventRecord event;
    uint64_t session;
  };
  uint32_t text_number(std::string_view text);
  void keep(const EventRecord& event);

  int number_;
  std::string name_;
  uint64_t session_ = 0;
  size_t limit_ = 0;
  std::vector<OpenRange> open_;
  std::vector<EventRecord> events_;  // a ring once it is full
  size_t oldest_ = 0;
  uint64_t dropped_ = 0;
  std::vector<std::string> texts_;
  std::map<std::string, uint32_t, std::less<>> numbers_;
};

// What is said of the process.
struct ProcessRecord {
  int rank = 0;
  int ranks = 1;
  int64_t wall_ns = 0;  // at the start, since 1970
  // Against rank 0, as measured at a time of this process. At most two: the first and the last.
  struct Clock {
    int64_t at, offset, error;
  };
  std::vector<Clock> clocks;
};

class HostCalls;

// Makes the text of a trace file. Its form is fixed, as catena-run reads it: the first line
// describes the process, and each line after the second holds one event.
class TraceWriter {
 public:
  // Open ranges end `now`.
  TraceWriter(const ProcessRecord& process, int64_t now);
  ~TraceWriter();
  // The thread's mutex is held.
  void add(const ThreadRecord& thread);
  // Streams of devices, after all threads: their spans say what call of the host they are of.
  // Tracks behind number `last`. Their times count from `origin`, the start of the trace on
  // CLOCK_MONOTONIC. Spans of a stream that overlap get tracks beside each other. Returns the last
  // number given.
  int add(const DeviceActivity& activity, int last, int64_t origin);
  std::string take();

 private:
  void next_line();
  void add_name(const char* what, int thread, const std::string& name);
  void begin_event(const std::string& tid, int64_t begin, int64_t end, Category category,
                   const std::string& name);
  void end_event(const std::string& details);
  void add_event(const EventRecord& event, const std::string& tid,
                 const std::vector<std::string>& texts);
  int add_track(const DeviceTrack& track, const std::vector<std::string>& names, int last,
                int64_t origin);
  std::string details_of(const DeviceSpan& span, int64_t origin) const;

  ProcessRecord process_;
  int64_t now_;
  std::string rank_, host_;
  uint64_t dropped_ = 0;
  std::vector<std::string> device_problems_;
  std::unique_ptr<HostCalls> calls_;
  std::string out_;
};

// This process's place in its job by the variables of launchers, as comm::launch_environment.
ProcessRecord process_from_environment();

// SIGTERM, SIGINT and SIGHUP write the trace before they end the process, where the program has
// not said what they do. Once a process.
void write_at_signals();

// Starts what CATENA_TRACE asks for; a problem is a warning.
void start_from_environment() noexcept;

}  // namespace catena::tracing
