// The text of a trace file.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/trace_record.h"

namespace catena::tracing {
namespace {

const char* category_name(Category category) {
  switch (category) {
    case Category::kRange:
      return "range";
    case Category::kFunction:
      return "function";
    case Category::kBackward:
      return "backward";
    case Category::kCommunication:
      return "communication";
    case Category::kUpdate:
      return "update";
    case Category::kData:
      return "data";
    case Category::kWait:
      return "wait";
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

class TextWriter {
 public:
  explicit TextWriter(int rank) : rank_(std::to_string(rank)) {}

  void add_name(const char* what, int thread, const std::string& name) {
    next_line();
    out_ += "{\"ph\":\"M\",\"pid\":" + rank_ + ",\"tid\":" + std::to_string(thread) +
            ",\"name\":\"" + what + "\",\"args\":{\"name\":" + quoted_json(name) + "}}";
  }

  void add_thread(const ThreadRecord& thread, int64_t now) {
    add_name("thread_name", thread.number(), thread.name());
    std::vector<std::string> texts;
    for (const std::string& text : thread.texts()) texts.push_back(quoted_json(text));
    const std::string tid = std::to_string(thread.number());
    for (const EventRecord& event : thread.sorted_events(now)) add_event(event, tid, texts);
  }

  std::string take() { return std::move(out_); }

 private:
  void next_line() {
    if (!out_.empty()) out_ += ",\n";
  }

  void add_event(const EventRecord& event, const std::string& tid,
                 const std::vector<std::string>& texts) {
    next_line();
    out_ += "{\"ph\":\"X\",\"pid\":" + rank_ + ",\"tid\":" + tid + ",\"ts\":";
    append_microseconds(out_, event.begin);
    out_ += ",\"dur\":";
    append_microseconds(out_, event.end - event.begin);
    out_ += ",\"cat\":\"";
    out_ += category_name(event.category);
    out_ += "\",\"name\":" + texts[event.name];
    std::string details;
    if (event.bytes >= 0) details += ",\"bytes\":" + std::to_string(event.bytes);
    if (event.peer >= 0) details += ",\"peer\":" + std::to_string(event.peer);
    if (texts[event.serves] != "\"\"") details += ",\"serves\":" + texts[event.serves];
    if (event.open) details += ",\"open\":true";
    if (!details.empty()) out_ += ",\"args\":{" + details.substr(1) + "}";
    out_ += "}";
  }

  std::string rank_;
  std::string out_;
};

std::string own_host() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

}  // namespace

std::string trace_text(const ProcessRecord& process, const std::vector<ThreadRecord*>& threads,
                       int64_t now) {
  TextWriter events(process.rank);
  const std::string host = own_host();
  events.add_name("process_name", 0, "rank " + std::to_string(process.rank) + " on " + host);
  uint64_t dropped = 0;
  for (const ThreadRecord* thread : threads) {
    events.add_thread(*thread, now);
    dropped += thread->dropped();
  }
  nlohmann::ordered_json about = {{"format", "catena trace 1"}, {"rank", process.rank},
                                  {"ranks", process.ranks},     {"host", host},
                                  {"process", getpid()},        {"wall_ns", process.wall_ns},
                                  {"dropped_events", dropped}};
  if (process.clock) {
    about["clock_offset_ns"] = process.clock->offset;
    about["clock_error_ns"] = process.clock->error;
  }
  return "{\"otherData\":" + about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         ",\n\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events.take() + "\n]}\n";
}

}  // namespace catena::tracing
