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

std::string own_host() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

}  // namespace

TraceWriter::TraceWriter(const ProcessRecord& process, int64_t now)
    : process_(process), now_(now), rank_(std::to_string(process.rank)), host_(own_host()) {
  add_name("process_name", 0, "rank " + rank_ + " on " + host_);
}

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
  for (const EventRecord& event : thread.sorted_events(now_)) add_event(event, tid, texts);
}

void TraceWriter::add_event(const EventRecord& event, const std::string& tid,
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

std::string TraceWriter::take() {
  nlohmann::ordered_json about = {{"format", "catena trace 1"}, {"rank", process_.rank},
                                  {"ranks", process_.ranks},    {"host", host_},
                                  {"process", getpid()},        {"wall_ns", process_.wall_ns},
                                  {"dropped_events", dropped_}};
  if (process_.clock) {
    about["clock_offset_ns"] = process_.clock->offset;
    about["clock_error_ns"] = process_.clock->error;
  }
  return "{\"otherData\":" + about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         ",\n\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + out_ + "\n]}\n";
}

}  // namespace catena::tracing
