#include "catena/core/trace.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "catena/core/call_scope.h"
#include "catena/core/error.h"
#include "catena/core/log.h"
#include "catena/core/profiler_range.h"
#include "core/environment.h"
#include "core/launch_variables.h"
#include "core/report_file.h"
#include "core/slurm_step.h"
#include "core/trace_record.h"

namespace catena::tracing {

std::atomic<bool> detail::recording{false};

namespace {

// A program may start threads without end; each keeps its events until the trace is written.
constexpr size_t kMostThreads = 4096;

struct Recorder {
  ForkMutex turn;   // held while a trace starts or stops, and of the tracers
  ForkMutex mutex;  // of all else but the atomics; taken after `turn`
  std::vector<DeviceTracer*> tracers;
  std::string path;
  ProcessRecord process;
  std::atomic<const ProfilerHooks*> hooks_before{nullptr};
  std::atomic<size_t> limit{0};
  pid_t owner = 0;
  std::vector<std::unique_ptr<ThreadRecord>> threads;
  int numbers = 0;
  std::atomic<uint64_t> session{0};
  std::atomic<int64_t> origin{0};
  std::terminate_handler terminate_before = nullptr;
  bool watches_ends = false;
};
// Never destroyed: threads may record while static objects go.
Recorder& recorder() {
  static auto* instance = new Recorder;
  return *instance;
}

int64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// The calling thread's record; its last word when the thread ends.
struct OwnRecord {
  ThreadRecord* record = nullptr;
  ~OwnRecord();
};
thread_local OwnRecord t_own;
constinit thread_local bool t_thread_ends = false;
OwnRecord::~OwnRecord() {
  t_thread_ends = true;
  if (record) record->owned.store(false, std::memory_order_release);
}

// Null in a thread that is ending, and when there are too many.
ThreadRecord* own_record() {
  if (t_thread_ends) return nullptr;
  if (t_own.record) return t_own.record;
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  if (r.threads.size() >= kMostThreads) return nullptr;
  r.threads.push_back(std::make_unique<ThreadRecord>(++r.numbers));
  t_own.record = r.threads.back().get();
  if (getpid() == gettid()) t_own.record->set_name("main");
  return t_own.record;
}

// Calls `use(record)` with the calling thread's record in the present session.
template <class Use>
void with_own_record(Use use) {
  ThreadRecord* record = own_record();
  if (record == nullptr) return;
  Recorder& r = recorder();
  const uint64_t session = r.session.load(std::memory_order_acquire);
  const std::lock_guard lock(record->mutex);
  if (active()) record->enter_session(session, r.limit.load(std::memory_order_relaxed));
  use(*record);
}

// Ranges of profilers, which go on to whoever heard them before.
void begin_hook(const char* name) {
  if (const ProfilerHooks* before = recorder().hooks_before) before->begin(name);
  begin(name);
}
void end_hook() noexcept {
  end();
  if (const ProfilerHooks* before = recorder().hooks_before) before->end();
}
constexpr ProfilerHooks kTraceHooks{begin_hook, end_hook};

// What the first of the variables that is set says.
int number_in_environment(std::initializer_list<const char*> names, int otherwise) {
  const char* text = first_set(names);
  return text ? std::atoi(text) : otherwise;
}

// A job of one rank that catena-run has started has a part as well, which catena-run takes.
std::string file_of(const std::string& path, const ProcessRecord& process) {
  const bool launched = number_in_environment({"CATENA_LAUNCHED"}, 0) != 0;
  if (process.ranks == 1 && !launched) return path;
  return path + ".rank" + std::to_string(process.rank);
}

// Records of threads that have ended.
void forget_ended_threads(Recorder& r) {
  std::erase_if(r.threads,
                [](const auto& thread) { return !thread->owned.load(std::memory_order_acquire); });
}

// What the devices did. They may take a while, in which threads go on to record.
std::vector<DeviceActivity> finish_tracers(const Recorder& r, bool patient) {
  std::vector<DeviceActivity> activities;
  for (DeviceTracer* tracer : r.tracers) activities.push_back(tracer->finish(patient));
  return activities;
}

bool finish_trace(bool patient) {
  Recorder& r = recorder();
  const std::lock_guard turn(r.turn);
  if (!active() || r.owner != getpid()) return false;
  const std::vector<DeviceActivity> activities = finish_tracers(r, patient);
  const std::lock_guard lock(r.mutex);
  detail::recording.store(false, std::memory_order_release);
  catena::detail::memory_profiles.fetch_sub(1);
  if (catena::detail::profiler_hooks.load(std::memory_order_acquire) == &kTraceHooks)
    set_profiler_hooks(r.hooks_before);
  const int64_t end = now();
  TraceWriter writer(r.process, end);
  for (const auto& thread : r.threads) {
    const std::lock_guard own_lock(thread->mutex);
    if (thread->session() != r.session.load()) continue;
    writer.add(*thread);
    thread->forget_events();
  }
  for (const DeviceActivity& activity : activities)
    r.numbers = writer.add(activity, r.numbers, r.origin.load());
  forget_ended_threads(r);
  write_report("trace", file_of(r.path, r.process), writer.take());
  return true;
}

void finish_quietly(bool patient) noexcept {
  try {
    finish_trace(patient);
  } catch (const std::exception& error) {
    logging::warning(error.what());
  }
}

void finish_at_exit() { finish_quietly(true); }

// The events of an uncaught exception are those that one looks for.
[[noreturn]] void write_and_terminate() {
  stop_quietly();
  if (recorder().terminate_before) recorder().terminate_before();
  std::abort();
}

void watch_ends(Recorder& r) {
  if (std::exchange(r.watches_ends, true)) return;
  std::atexit(finish_at_exit);
  r.terminate_before = std::set_terminate(write_and_terminate);
}

}  // namespace

ProcessRecord process_from_environment() {
  const SlurmStep otherwise = slurm_step().value_or(SlurmStep{});
  ProcessRecord process;
  process.ranks = number_in_environment(kSizeVariables, otherwise.size);
  if (process.ranks == 1) return process;
  process.rank = number_in_environment(kRankVariables, otherwise.rank);
  return process;
}

void start(const std::string& path, const TraceOptions& options) {
  Recorder& r = recorder();
  const std::lock_guard turn(r.turn);
  std::unique_lock lock(r.mutex);
  CATENA_CHECK(ValueError, !active(), "tracing::start: a trace for ", r.path,
               " is being recorded; call tracing::stop() first");
  CATENA_CHECK(ValueError, !path.empty(), "tracing::start: the name of the file is empty");
  CATENA_CHECK(ValueError, options.events_per_thread > 0,
               "tracing::start: events_per_thread is 0, expected at least 1");
  r.process = process_from_environment();
  check_report("trace", file_of(path, r.process));  // now, not after hours of training
  r.path = path;
  r.limit = options.events_per_thread;
  r.owner = getpid();
  forget_ended_threads(r);
  r.origin = clock_ns(CLOCK_MONOTONIC);
  r.process.wall_ns = clock_ns(CLOCK_REALTIME);
  r.session.fetch_add(1, std::memory_order_release);
  watch_ends(r);
  r.hooks_before = catena::detail::profiler_hooks.load(std::memory_order_acquire);
  catena::detail::memory_profiles.fetch_add(1);  // functions then name themselves
  detail::recording.store(true, std::memory_order_release);
  set_profiler_hooks(&kTraceHooks);
  lock.unlock();
  for (DeviceTracer* tracer : r.tracers) tracer->start(options.events_per_thread);
}

void add_device_tracer(DeviceTracer& tracer) {
  Recorder& r = recorder();
  const std::lock_guard turn(r.turn);
  r.tracers.push_back(&tracer);
  if (!active() || r.owner != getpid()) return;
  tracer.start(r.limit.load());
  // Again, to be called before the exit handlers of the device's driver.
  std::atexit(finish_at_exit);
}

bool stop() { return finish_trace(true); }

void stop_quietly() noexcept { finish_quietly(false); }

void begin(std::string_view name, Category category) {
  with_own_record([&](ThreadRecord& record) { record.begin(name, category, now()); });
}

void end() noexcept {
  const int64_t at = now();
  with_own_record([&](ThreadRecord& record) { record.end(at, active()); });
}

void describe(std::string_view name, Category category, const Details& details) {
  if (!active()) return;
  with_own_record([&](ThreadRecord& record) { record.describe(name, category, details); });
}

void name_thread(std::string_view name) {
  if (!active()) return;
  with_own_record([&](ThreadRecord& record) { record.set_name(name); });
}

int64_t now() {
  return clock_ns(CLOCK_MONOTONIC) - recorder().origin.load(std::memory_order_relaxed);
}

void start_from_environment() noexcept {
  const char* path = std::getenv("CATENA_TRACE");
  if (path == nullptr || *path == '\0') return;
  try {
    start(path);
    write_at_signals();
  } catch (const std::exception& error) {
    logging::warning("CATENA_TRACE: ", error.what());
  }
}

void set_place(int rank, int ranks) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  r.process.rank = rank;
  r.process.ranks = ranks;
  // Again, to be called before the exit handlers that were set up since: MPI's wait for others.
  std::atexit(finish_at_exit);
}

void set_clock(int64_t offset, int64_t error) {
  Recorder& r = recorder();
  const ProcessRecord::Clock measured{now(), offset, error};
  const std::lock_guard lock(r.mutex);
  if (r.process.clocks.size() > 1) r.process.clocks.pop_back();
  r.process.clocks.push_back(measured);
}

}  // namespace catena::tracing
