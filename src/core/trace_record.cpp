#include "core/trace_record.h"

#include <unistd.h>

#include <algorithm>
#include <tuple>

namespace catena::tracing {
namespace {

// A program that puts numbers into its names does not fill the memory with them.
constexpr size_t kMostTexts = 1 << 16;
constexpr const char* kFurtherTexts = "(further names)";

}  // namespace

void ThreadRecord::enter_session(uint64_t session, size_t limit) {
  if (session == session_) return;
  forget_events();
  session_ = session;
  limit_ = limit;
}

void ThreadRecord::forget_events() {
  events_ = {};
  texts_ = {};
  numbers_.clear();
  oldest_ = 0;
  dropped_ = 0;
  session_ = 0;
}

uint32_t ThreadRecord::text_number(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  if (texts_.size() >= kMostTexts && text != kFurtherTexts) return text_number(kFurtherTexts);
  const auto number = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(text, number);
  return number;
}

void ThreadRecord::begin(std::string_view name, Category category, int64_t now) {
  OpenRange range{{}, session_};
  range.event.begin = now;
  range.event.name = text_number(name);
  range.event.serves = text_number("");
  range.event.category = category;
  open_.push_back(range);
}

void ThreadRecord::describe(std::string_view name, Category category, const Details& details) {
  if (open_.empty() || open_.back().session != session_) return;
  EventRecord& event = open_.back().event;
  if (texts_[event.name] != name) return;
  event.category = category;
  event.bytes = details.bytes;
  event.peer = details.peer;
  event.serves = text_number(details.serves);
}

void ThreadRecord::end(int64_t now, bool recording) {
  if (open_.empty()) return;
  OpenRange range = open_.back();
  open_.pop_back();
  if (!recording || range.session != session_) return;
  range.event.end = now;
  keep(range.event);
}

void ThreadRecord::keep(const EventRecord& event) {
  if (events_.size() < limit_) return events_.push_back(event);
  events_[oldest_] = event;
  oldest_ = (oldest_ + 1) % limit_;
  ++dropped_;
}

std::vector<EventRecord> ThreadRecord::sorted_events(int64_t now) const {
  std::vector<EventRecord> events = events_;
  for (const OpenRange& range : open_) {
    if (range.session != session_) continue;
    events.push_back(range.event);
    events.back().end = now;
    events.back().open = true;
  }
  // Of those that begin at once the longest is outside of the others.
  std::stable_sort(events.begin(), events.end(), [](const EventRecord& a, const EventRecord& b) {
    return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
  });
  return events;
}

std::string ThreadRecord::name() const {
  return name_.empty() ? "thread " + std::to_string(number_) : name_;
}

}  // namespace catena::tracing
