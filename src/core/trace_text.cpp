// The text of a trace file.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/trace_record.h"

namespace catena::tracing {
namespace {

bool asks_for_work(Category category) {
  return category == Category::kFunction || category == Category::kBackward ||
         category == Category::kCommunication || category == Category::kUpdate;
}

const char* category_name(Category category) {
  switch (category) {
    case Category::kRange: return "range";
    case Category::kFunction: return "function";
    case Category::kBackward: return "backward";
    case Category::kCommunication: return "communication";
    case Category::kUpdate: return "update";
    case Category::kData: return "data";
    case Category::kWait: return "wait";
    case Category::kPipeline: return "pipeline";
    case Category::kStep: return "step";
    case Category::kKernel: return "kernel";
    case Category::kCollective: return "collective";
    case Category::kCopy: return "copy";
  }
  return "range";
}

// With quotes; what is no UTF-8 becomes the replacement character.
std::string quoted_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds, as the format wants them, to the nanosecond.
void append_microseconds(std::string& out, int64_t ns) {
  char text[40];
  const int64_t positive = ns < 0 ? -ns : ns;
  std::snprintf(text, sizeof text, "%s%lld.%03d", ns < 0 ? "-" : "",
                static_cast<long long>(positive / 1000), static_cast<int>(positive % 1000));
  out += text;
}

std::string own_host() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

}  // namespace

// Calls of the host by time: those whose work a device does.
class HostCalls {
 public:
  struct Call {
    std::string name;  // as the thread's texts have it
    int64_t bytes = -1;
  };
  // The functions, backwards, updates and calls of communicators of one thread: its events in the
  // order of sorted_events(), and its texts.
  void add_thread(const std::vector<EventRecord>& events, const std::vector<std::string>& texts) {
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
  // The innermost call at that time; null when there is none, and when several threads are in one,
  // as it is then not known whose the work is.
  const Call* at(int64_t time) const {
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

 private:
  // From a time on, until that of the next; -1: no call.
  using Changes = std::vector<std::pair<int64_t, int>>;

  std::vector<Call> calls_;
  std::vector<Changes> threads_;
};

TraceWriter::TraceWriter(const ProcessRecord& process, int64_t now)
    : process_(process),
      now_(now),
      rank_(std::to_string(process.rank)),
      host_(own_host()),
      calls_(std::make_unique<HostCalls>()) {
  add_name("process_name", 0, "rank " + rank_ + " on " + host_);
}

TraceWriter::~TraceWriter() = default;

void TraceWriter::next_line() {
  if (!out_.empty()) out_ += ",\n";
}

void TraceWriter::add_name(const char* what, int thread, const std::string& name) {
  next_line();
  out_ += "{\"ph\":\"M\",\"pid\":" + rank_ + ",\"tid\":" + std::to_string(thread) + ",\"name\":\"" +
          what + "\",\"args\":{\"name\":" + quoted_json(name) + "}}";
}

void TraceWriter::add(const ThreadRecord& thread) {
  dropped_ += thread.dropped();
  add_name("thread_name", thread.number(), thread.name());
  std::vector<std::string> texts;
  for (const std::string& text : thread.texts()) texts.push_back(quoted_json(text));
  const std::string tid = std::to_string(thread.number());
  const std::vector<EventRecord> events = thread.sorted_events(now_);
  for (const EventRecord& event : events) add_event(event, tid, texts);
  calls_->add_thread(events, texts);
}

// `name` is quoted.
void TraceWriter::begin_event(const std::string& tid, int64_t begin, int64_t end, Category category,
                              const std::string& name) {
  next_line();
  out_ += "{\"ph\":\"X\",\"pid\":" + rank_ + ",\"tid\":" + tid + ",\"ts\":";
  append_microseconds(out_, begin);
  out_ += ",\"dur\":";
  append_microseconds(out_, end - begin);
  out_ += ",\"cat\":\"";
  out_ += category_name(category);
  out_ += "\",\"name\":" + name;
}

// Each detail has a comma before it.
void TraceWriter::end_event(const std::string& details) {
  if (!details.empty()) out_ += ",\"args\":{" + details.substr(1) + "}";
  out_ += "}";
}

void TraceWriter::add_event(const EventRecord& event, const std::string& tid,
                            const std::vector<std::string>& texts) {
  begin_event(tid, event.begin, event.end, event.category, texts[event.name]);
  std::string details;
  if (event.bytes >= 0) details += ",\"bytes\":" + std::to_string(event.bytes);
  if (event.peer >= 0) details += ",\"peer\":" + std::to_string(event.peer);
  if (texts[event.serves] != "\"\"") details += ",\"serves\":" + texts[event.serves];
  if (event.open) details += ",\"open\":true";
  end_event(details);
}

int TraceWriter::add(const DeviceActivity& activity, int last, int64_t origin) {
  if (!activity.problem.empty()) device_problems_.push_back(activity.problem);
  std::vector<std::string> names;
  for (const std::string& name : activity.names) names.push_back(quoted_json(name));
  for (const DeviceTrack& track : activity.tracks) {
    dropped_ += track.dropped;
    last = add_track(track, names, last, origin);
  }
  return last;
}

// Viewers drop events of a track that overlap without one being inside of the other, as kernels do
// that begin before the one ahead of them has ended.
int TraceWriter::add_track(const DeviceTrack& track, const std::vector<std::string>& names,
                           int last, int64_t origin) {
  std::vector<DeviceSpan> spans = track.spans;
  std::stable_sort(spans.begin(), spans.end(),
                   [](const DeviceSpan& a, const DeviceSpan& b) { return a.begin < b.begin; });
  std::vector<int64_t> lanes;  // when each is free again
  for (const DeviceSpan& span : spans) {
    if (span.end < origin) continue;  // it belongs to an earlier trace
    const auto free = std::find_if(lanes.begin(), lanes.end(),
                                   [&](int64_t until) { return until <= span.begin; });
    const auto lane = static_cast<size_t>(free - lanes.begin());
    const int number = last + 1 + static_cast<int>(lane);
    if (free == lanes.end()) {
      lanes.push_back(0);
      const std::string beside = lane == 0 ? "" : " (" + std::to_string(lane + 1) + ")";
      add_name("thread_name", number, track.name + beside);
    }
    lanes[lane] = span.end;
    begin_event(std::to_string(number), span.begin - origin, span.end - origin, span.category,
                names[span.name]);
    end_event(details_of(span, origin));
  }
  return last + static_cast<int>(lanes.size());
}

// Of a collective the host knows the bytes.
std::string TraceWriter::details_of(const DeviceSpan& span, int64_t origin) const {
  const HostCalls::Call* const call =
      span.launched > 0 ? calls_->at(span.launched - origin) : nullptr;
  const bool is_collective = span.category == Category::kCollective;
  const int64_t bytes = is_collective && call ? call->bytes : span.bytes;
  std::string details;
  if (call) details += ",\"of\":" + call->name;
  if (bytes >= 0) details += ",\"bytes\":" + std::to_string(bytes);
  if (span.in_graph) details += ",\"graph\":true";
  if (span.launched > 0) {
    details += ",\"launched\":";
    append_microseconds(details, span.launched - origin);
  }
  return details;
}

std::string TraceWriter::take() {
  nlohmann::ordered_json about = {{"format", "catena trace 1"}, {"rank", process_.rank},
                                  {"ranks", process_.ranks},    {"host", host_},
                                  {"process", getpid()},        {"wall_ns", process_.wall_ns},
                                  {"dropped_events", dropped_}};
  if (!process_.clocks.empty()) {
    const ProcessRecord::Clock &first = process_.clocks.front(), &last = process_.clocks.back();
    about["clock_at_ns"] = first.at;
    about["clock_offset_ns"] = first.offset;
    about["clock_error_ns"] = first.error;
    if (process_.clocks.size() > 1)
      about["clock_later"] = {
          {"at_ns", last.at}, {"offset_ns", last.offset}, {"error_ns", last.error}};
  }
  if (!device_problems_.empty()) about["device_problems"] = device_problems_;
  return "{\"otherData\":" + about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         ",\n\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + out_ + "\n]}\n";
}

}  // namespace catena::tracing
