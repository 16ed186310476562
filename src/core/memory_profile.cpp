#include "catena/core/memory_profile.h"

#include <algorithm>
#include <iomanip>
#include <map>
#include <mutex>
#include <sstream>
#include <string_view>
#include <tuple>

#include "catena/core/fork_mutex.h"
#include "catena/core/trace.h"

namespace catena {
namespace detail {

std::atomic<int> memory_profiles{0};

}  // namespace detail

struct MemoryProfile::Ledger {
  ForkMutex mutex;
  std::map<std::pair<std::string, std::string>, Entry> entries;  // by call and device name

  void add(const std::string& call, Device device, size_t bytes) {
    std::lock_guard lock(mutex);
    Entry& e = entries[{call, device.name()}];
    e.call = call;
    e.device = device;
    e.held += bytes;
    e.peak = std::max(e.peak, e.held);
    e.total += bytes;
    ++e.blocks;
    ++e.allocations;
  }
  void remove(const std::string& call, Device device, size_t bytes) {
    std::lock_guard lock(mutex);
    Entry& e = entries[{call, device.name()}];
    e.held -= bytes;
    --e.blocks;
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

struct EnteredCall {
  const char* name;
  bool traced;
};
thread_local std::vector<EnteredCall> t_calls;

// Names of backward calls say so (BackwardPass::call).
tracing::Category category_of(std::string_view name) {
  return name.starts_with("backward of ") ? tracing::Category::kBackward
                                          : tracing::Category::kFunction;
}

std::string call_path() {
  if (t_calls.empty()) return "(unnamed)";
  std::string path;
  for (const EnteredCall& call : t_calls) {
    if (!path.empty()) path += '/';
    path += call.name;
  }
  return path;
}

// Lives in the storage: its end is the storage's end.
struct Observer {
  std::vector<LedgerPtr> ledgers;
  std::string call;
  Device device;
  size_t bytes;

  Observer(std::vector<LedgerPtr> all, std::string path, Device on, size_t size)
      : ledgers(std::move(all)), call(std::move(path)), device(on), bytes(size) {
    for (const LedgerPtr& ledger : ledgers) ledger->add(call, device, bytes);
  }
  ~Observer() {
    for (const LedgerPtr& ledger : ledgers) ledger->remove(call, device, bytes);
  }
};

}  // namespace

namespace detail {

void enter_call(const char* name) {
  const bool traced = tracing::active();
  t_calls.push_back({name, traced});
  if (traced) tracing::begin(name, category_of(name));
}

void leave_call() noexcept {
  if (t_calls.back().traced) tracing::end();
  t_calls.pop_back();
}

void observe_allocation(Storage& storage) {
  std::vector<LedgerPtr> ledgers;
  {
    std::lock_guard lock(running().mutex);
    ledgers = running().ledgers;
  }
  if (ledgers.empty()) return;
  storage.observer =
      std::make_shared<Observer>(std::move(ledgers), call_path(), storage.device, storage.bytes);
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
    for (const auto& [key, entry] : ledger_->entries) result.push_back(entry);
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

}  // namespace catena
