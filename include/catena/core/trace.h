// A time line of the process as a Chrome trace: a JSON file that Perfetto (ui.perfetto.dev) and
// chrome://tracing open.
//
//   tracing::start("step.json");
//   train_one_step();
//   tracing::stop();
//
// The library records its functions, forward and backward, the calls of communicators with their
// bytes, updates of optimizers, waits for batches and for GPUs, the actions of a pipeline and every
// ProfilerRange (cuda::Range), by the time of the host. Where CUPTI is installed, the kernels and
// copies of GPUs have tracks of their own, one a stream. CATENA_TRACE=FILE traces a program from
// its start to its end, and catena-run --trace FILE all ranks of a job.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace catena::tracing {

// What an event is about. Viewers show it, and summaries count by it.
enum class Category : uint8_t {
  kRange,          // the user's, and the library's that have no kind of their own
  kFunction,       // a call of a function
  kBackward,       // the backward of a function
  kCommunication,  // a call of a communicator
  kUpdate,         // Optimizer::update: its end is the end of a step
  kData,           // the program waits for a batch
  kWait,           // the host waits for a device
  kPipeline,       // a computation of a pipeline's schedule
  kStep,           // a whole step, should updates not end it: a program may have several a step
  // On a device, by its own time (core/device_trace.h):
  kKernel,
  kCollective,  // a kernel that communicates
  kCopy         // a copy or a fill
};

// How much a trace may hold.
struct TraceOptions {
  // Each thread keeps its last events, at most so many (40 bytes each). The trace says how many
  // older ones were dropped.
  size_t events_per_thread = size_t(1) << 18;
};

// Starts to record. stop(), the end of the program or an exception that ends it writes `path`; in a
// job of several ranks the file is `path` with ".rank<r>" behind it. A program that a signal ends
// leaves no file; one that CATENA_TRACE traces does at SIGTERM, SIGINT and SIGHUP, unless the
// program handles them.
// A file that is there is replaced; where `path` is a link, the file that it leads to.
// ValueError if a trace is being recorded, or for 0 events; Error if no file can be made beside
// `path`, and if something other than a regular file is there. Thread-safe.
void start(const std::string& path, const TraceOptions& options = {});
// Writes the file in one step, so that it is never seen half written. Ranges that are still open
// end now and are marked "open". False if nothing is being recorded, and in a process that was
// forked from the one that started. Error if the file cannot be written; its events are then lost.
// Thread-safe.
bool stop();
// The same where no exception may leave and there is no time, as the process is being ended: a
// problem is logged as a warning, and work of devices that does not end at once is left out.
void stop_quietly() noexcept;

namespace detail {
extern std::atomic<bool> recording;
}
// One load.
inline bool active() noexcept { return detail::recording.load(std::memory_order_relaxed); }

// A range of this thread from begin to end; ranges of a thread nest. Each begin needs an end,
// whether or not a trace is being recorded meanwhile. The name is copied.
void begin(std::string_view name, Category category = Category::kRange);
void end() noexcept;

// The same from construction to destruction, also by an exception. One load while nothing is
// recorded.
class Range {
 public:
  explicit Range(std::string_view name, Category category = Category::kRange) : begun_(active()) {
    if (begun_) [[unlikely]]
      begin(name, category);
  }
  ~Range() {
    if (begun_) [[unlikely]]
      end();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  const bool begun_;
};

// What a viewer shows beside a range.
struct Details {
  int64_t bytes = -1;       // moved; -1: none
  int peer = -1;            // the root, or the other rank of a message; -1: none
  std::string_view serves;  // what the call is for; copied
};
// Gives the innermost open range of this thread, if it has that name, a category and details.
void describe(std::string_view name, Category category, const Details& details = {});
// The calling thread's name in the trace; otherwise it has a number. Only while one is recorded.
void name_thread(std::string_view name);

// Ranks ------------------------------------------------------------------------------------------

// Nanoseconds since start(), on this process's clock.
int64_t now();
// This process's place in the job. start() takes it from the launcher's variables, and,
// under CATENA_TRACE, create_communicator from its communicator.
void set_place(int rank, int ranks);
// What must be added to times of this process to get those of rank 0, in nanoseconds, and how far
// off that may be, now. comm::align_traces measures it. Between the first and the last measurement
// the clocks are taken to drift apart evenly.
void set_clock(int64_t offset, int64_t error);

}  // namespace catena::tracing
