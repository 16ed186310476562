#include "catena/core/memory_profile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <map>
#include <mutex>
#include <sstream>
#include <tuple>

#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/log.h"
#include "core/memory_picture.h"
#include "core/report_file.h"
#include "core/trace_record.h"

namespace catena {

struct MemoryProfile::Ledger {
  using Clock = std::chrono::steady_clock;
  struct Caller {
    Entry entry;
    MemoryTimeline* timeline = nullptr;  // its device's
  };

  ForkMutex mutex;
  const Clock::time_point start = Clock::now();
  std::map<std::pair<std::string, std::string>, uint32_t> numbers;  // by call and device name
  std::vector<Caller> callers;
  std::map<std::string, MemoryTimeline> timelines;  // by device name

  int64_t now() const { return std::chrono::nanoseconds(Clock::now() - start).count(); }

  // The caller's number.
  uint32_t add(const std::string& call, Device device, size_t bytes) {
    std::lock_guard lock(mutex);
    const auto [at, is_new] = numbers.try_emplace({call, device.name()}, uint32_t(callers.size()));
    if (is_new) callers.emplace_back().timeline = &timelines[device.name()];
    Entry& e = callers[at->second].entry;
    e.call = call;
    e.device = device;
    e.held += bytes;
    e.peak = std::max(e.peak, e.held);
    e.total += bytes;
    ++e.blocks;
    ++e.allocations;
    note(at->second, int64_t(bytes));
    return at->second;
  }
  void remove(uint32_t number, size_t bytes) {
    std::lock_guard lock(mutex);
    Entry& e = callers[number].entry;
    e.held -= bytes;
    --e.blocks;
    note(number, -int64_t(bytes));
  }

 private:
  void note(uint32_t number, int64_t bytes) {
    if (bytes != 0) callers[number].timeline->add(now(), number, bytes);
  }
};

namespace {

using LedgerPtr = std::shared_ptr<MemoryProfile::Ledger>;

struct Running {
  ForkMutex mutex;
  std::vector<LedgerPtr> ledgers;
};
// Never destroyed: arrays may be made while static objects go.
Running& running() {
  static Running* instance = new Running;
  return *instance;
}

// Lives in the storage: its end is the storage's end.
struct Observer {
  std::vector<std::pair<LedgerPtr, uint32_t>> callers;
  size_t bytes;

  Observer(const std::vector<LedgerPtr>& ledgers, const std::string& path, const Storage& storage)
      : bytes(storage.bytes) {
    for (const LedgerPtr& ledger : ledgers)
      callers.emplace_back(ledger, ledger->add(path, storage.device, bytes));
  }
  ~Observer() {
    for (const auto& [ledger, number] : callers) ledger->remove(number, bytes);
  }
};

}  // namespace

namespace detail {

void observe_allocation(Storage& storage) {
  std::vector<LedgerPtr> ledgers;
  {
    std::lock_guard lock(running().mutex);
    ledgers = running().ledgers;
  }
  if (!ledgers.empty())
    storage.observer = std::make_shared<Observer>(ledgers, call_path(), storage);
}

}  // namespace detail

MemoryProfile::MemoryProfile() : ledger_(std::make_shared<Ledger>()) {
  std::lock_guard lock(running().mutex);
  running().ledgers.push_back(ledger_);
  detail::memory_profiles.fetch_add(1);
}

MemoryProfile::~MemoryProfile() {
  std::lock_guard lock(running().mutex);
  std::erase(running().ledgers, ledger_);
  detail::memory_profiles.fetch_sub(1);
}

std::vector<MemoryProfile::Entry> MemoryProfile::entries() const {
  std::vector<Entry> result;
  {
    std::lock_guard lock(ledger_->mutex);
    for (const auto& [key, number] : ledger_->numbers)
      result.push_back(ledger_->callers[number].entry);
  }
  std::stable_sort(result.begin(), result.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.held, a.total) > std::tie(b.held, b.total);
  });
  return result;
}

std::string MemoryProfile::report() const {
  std::ostringstream out;
  out << std::setw(14) << "bytes held" << std::setw(14) << "peak" << std::setw(16) << "total"
      << std::setw(8) << "blocks" << std::setw(10) << "made"
      << "  device   call\n";
  for (const Entry& e : entries()) {
    out << std::setw(14) << e.held << std::setw(14) << e.peak << std::setw(16) << e.total
        << std::setw(8) << e.blocks << std::setw(10) << e.allocations << "  " << std::left
        << std::setw(7) << e.device.name() << std::right << "  " << e.call << '\n';
  }
  return out.str();
}

void MemoryProfile::write_svg(const std::string& path, const MemoryPictureOptions& options) const {
  constexpr const char* kCall = "MemoryProfile::write_svg";
  const auto require = [](bool valid, const char* what, int value, const char* expected) {
    CATENA_CHECK(ValueError, valid, kCall, ": ", what, " is ", value, ", expected ", expected);
  };
  require(options.callers >= 1 && options.callers <= 12, "callers", options.callers, "1 to 12");
  require(options.levels >= 0, "levels", options.levels, "0 for whole paths, or more");
  require(options.width >= 480 && options.width <= 10'000, "width", options.width,
          "480 to 10,000 pixels");
  std::vector<std::string> paths;
  std::map<std::string, MemoryTimeline> timelines;
  int64_t end = 0;
  {
    std::lock_guard lock(ledger_->mutex);
    for (const Ledger::Caller& caller : ledger_->callers) paths.push_back(caller.entry.call);
    timelines = ledger_->timelines;
    end = ledger_->now();
  }
  if (options.device) {
    MemoryTimeline of_device = std::move(timelines[options.device->name()]);
    timelines = {{options.device->name(), std::move(of_device)}};
  } else if (timelines.empty()) {
    timelines["cpu:0"];
  }
  std::vector<DeviceMemory> devices;
  for (auto& [name, timeline] : timelines) {
    // Changes that were made within one nanosecond have later times.
    if (!timeline.changes().empty()) end = std::max(end, timeline.changes().back().ns);
    devices.push_back({Device(name), std::move(timeline)});
  }
  write_report(kCall, path, draw_memory(paths, devices, std::max<int64_t>(end, 1), options));
}

// Of the whole program, where CATENA_MEMORY_PROFILE asks for it.
namespace {

constexpr const char* kProgram = "CATENA_MEMORY_PROFILE";

struct ProgramProfile {
  MemoryProfile profile;
  std::string path;
  pid_t owner = getpid();
  std::terminate_handler terminate_before = nullptr;
};
ProgramProfile* g_program = nullptr;  // never destroyed: static objects hold arrays

// "memory.rank3.svg" of "memory.svg" in a job of several ranks.
std::string path_of_rank(const std::filesystem::path& path) {
  const tracing::ProcessRecord process = tracing::process_from_environment();
  if (process.ranks == 1) return path;
  std::filesystem::path result = path;
  result.replace_extension(".rank" + std::to_string(process.rank));
  return result += path.extension();
}

void draw_program() noexcept {
  if (g_program->owner != getpid()) return;  // a child of fork()
  try {
    g_program->profile.write_svg(g_program->path);
  } catch (const std::exception& error) {
    logging::warning(kProgram, ": ", error.what());
  }
}

// Out of memory, for instance.
[[noreturn]] void draw_and_terminate() {
  draw_program();
  if (g_program->terminate_before) g_program->terminate_before();
  std::abort();
}

[[maybe_unused]] const bool g_program_is_profiled = [] {
  const char* path = std::getenv(kProgram);
  if (path == nullptr || *path == '\0') return false;
  try {
    check_report(kProgram, path_of_rank(path));  // now, not after hours of training
  } catch (const std::exception& error) {
    logging::warning(error.what());
    return false;
  }
  g_program = new ProgramProfile{.path = path_of_rank(path)};
  std::atexit(draw_program);
  g_program->terminate_before = std::set_terminate(draw_and_terminate);
  return true;
}();

}  // namespace
}  // namespace catena
