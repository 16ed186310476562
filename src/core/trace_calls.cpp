#include "core/trace_calls.h"

#include <algorithm>

namespace catena::tracing {
namespace {

bool asks_for_work(Category category) {
  return category == Category::kFunction || category == Category::kBackward ||
         category == Category::kCommunication || category == Category::kUpdate;
}

}  // namespace

void HostCalls::add_thread(const std::vector<EventRecord>& events,
                           const std::vector<std::string>& texts) {
  Changes changes;
  struct Open {
    int64_t end;
    int call;
  };
  std::vector<Open> open;
  const auto close_until = [&](int64_t time) {
    while (!open.empty() && open.back().end <= time) {
      const int64_t end = open.back().end;
      open.pop_back();
      changes.emplace_back(end, open.empty() ? -1 : open.back().call);
    }
  };
  for (const EventRecord& event : events) {
    if (!asks_for_work(event.category)) continue;
    close_until(event.begin);
    open.push_back({event.end, static_cast<int>(calls_.size())});
    calls_.push_back({texts[event.name], event.bytes});
    changes.emplace_back(event.begin, open.back().call);
  }
  close_until(INT64_MAX);
  threads_.push_back(std::move(changes));
}

const HostCalls::Call* HostCalls::at(int64_t time) const {
  const Call* found = nullptr;
  for (const Changes& changes : threads_) {
    const auto next = std::upper_bound(changes.begin(), changes.end(), time,
                                       [](int64_t wanted, const std::pair<int64_t, int>& change) {
                                         return wanted < change.first;
                                       });
    const int call = next == changes.begin() ? -1 : (next - 1)->second;
    if (call < 0) continue;
    if (found) return nullptr;
    found = &calls_[static_cast<size_t>(call)];
  }
  return found;
}

}  // namespace catena::tracing
