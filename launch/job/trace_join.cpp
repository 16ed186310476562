#include "job/trace_join.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/text.h"
#include "job/report.h"

namespace catena::launch {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kStepsTrack = 0;  // threads count from 1

std::string part_name(const std::string& file, int rank) {
  return file + ".rank" + std::to_string(rank);
}

// What to add to a rank's times to get those of rank 0: it changes evenly from the first time that
// it was measured to the last, as two clocks drift apart, and not before and after.
struct ClockLine {
  struct Point {
    std::int64_t at = 0, offset = 0;
  };
  Point first, last;

  std::int64_t offset(std::int64_t time) const {
    if (time <= first.at || last.at <= first.at) return first.offset;
    const double share = double(std::min(time, last.at) - first.at) / double(last.at - first.at);
    return first.offset + std::llround(share * double(last.offset - first.offset));
  }
};

// A part's first line, and where its times are on the common clock.
struct TracePart {
  int rank = 0;
  std::string path;
  Json about;
  std::optional<ClockLine> clock;  // nothing: not measured
  std::int64_t wall = 0;
  std::int64_t start = 0;  // of the common time line, by the clock of rank 0

  std::int64_t place(std::int64_t time) const { return time + clock->offset(time) - start; }
};

std::optional<ClockLine> read_clock(const Json& about) {
  if (!about.contains("clock_offset_ns")) return {};
  ClockLine clock;
  clock.first = {about.value("clock_at_ns", std::int64_t(0)),
                 about["clock_offset_ns"].get<std::int64_t>()};
  clock.last = clock.first;
  if (about.contains("clock_later"))
    clock.last = {about["clock_later"].at("at_ns").get<std::int64_t>(),
                  about["clock_later"].at("offset_ns").get<std::int64_t>()};
  return clock;
}

// In nanoseconds; the larger where it was measured twice.
std::int64_t clock_error(const Json& about) {
  const std::int64_t first = about.value("clock_error_ns", std::int64_t(0));
  if (!about.contains("clock_later")) return first;
  return std::max(first, about["clock_later"].value("error_ns", std::int64_t(0)));
}

// A pipe, which would be waited for, or a link is not a part of a trace.
bool is_part(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::regular;
}

std::optional<TracePart> open_part(const std::string& file, int rank, JoinedTrace& joined) {
  TracePart part;
  part.rank = rank;
  part.path = part_name(file, rank);
  std::ifstream stream;
  if (is_part(part.path)) stream.open(part.path);
  std::string line;
  if (!stream.is_open() || !std::getline(stream, line)) {
    joined.missing.push_back(rank);
    return {};
  }
  try {
    if (!line.empty() && line.back() == ',') line.back() = '}';
    part.about = Json::parse(line).at("otherData");
    part.wall = part.about.at("wall_ns").get<std::int64_t>();
    part.clock = read_clock(part.about);
  } catch (const Json::exception& error) {
    joined.damaged.push_back(part.path + ": " + error.what());
    return {};
  }
  return part;
}

// Ranks that did not come to compare their clocks are placed by the time of day.
void place_parts(std::vector<TracePart>& parts, JoinedTrace& joined) {
  std::optional<std::int64_t> wall_of_rank_0;
  for (const TracePart& part : parts)
    if (part.clock && !wall_of_rank_0) wall_of_rank_0 = part.wall - part.clock->first.offset;
  if (!wall_of_rank_0) wall_of_rank_0 = parts.front().wall;
  for (TracePart& part : parts) {
    if (part.clock) joined.clock_error = std::max(joined.clock_error, clock_error(part.about));
    if (part.clock) continue;
    const ClockLine::Point by_day{0, part.wall - *wall_of_rank_0};
    part.clock = {by_day, by_day};
    if (parts.size() > 1) joined.unaligned.push_back(part.rank);
  }
  std::int64_t first = parts.front().clock->offset(0);
  for (const TracePart& part : parts) first = std::min(first, part.clock->offset(0));
  for (TracePart& part : parts) part.start = first;
}

std::int64_t nanoseconds(const Json& event, const char* key) {
  return std::llround(event.at(key).get<double>() * 1000);
}

double microseconds(std::int64_t ns) { return double(ns) / 1000; }

void note_device_event(DeviceTimes& device, const Json& event, const std::string& kind,
                       TimeSpan span) {
  if (kind == "kernel") device.kernels.push_back(span);
  if (kind == "collective") device.collectives.push_back(span);
  if (event.contains("args") && event["args"].contains("launched"))
    device.work.push_back({nanoseconds(event["args"], "launched"), span.end});
}

void note_event(RankTimes& times, const Json& event, TimeSpan span) {
  const std::string kind = event.value("cat", "");
  const int thread = event.value("tid", 0);
  const bool open = event.contains("args") && event["args"].contains("open");
  if (kind == "communication") times.communication[thread].push_back(span);
  if (kind == "function" || kind == "backward" || kind == "update")
    times.work[thread].push_back(span);
  if (kind == "pipeline") times.pipeline[thread].push_back(span);
  if (kind == "data") times.data.push_back(span);
  if (kind == "update" && !open) times.updates.push_back(span.end);
  if (kind == "step" && !open) times.marked_steps.push_back(span);
  note_device_event(times.device, event, kind, span);
  if (times.whole.end == 0) times.whole = span;
  times.whole.begin = std::min(times.whole.begin, span.begin);
  times.whole.end = std::max(times.whole.end, span.end);
}

// Moves an event to the common clock.
TimeSpan move_event(const TracePart& part, Json& event) {
  const std::int64_t begin = nanoseconds(event, "ts");
  const TimeSpan span = {part.place(begin), part.place(begin + nanoseconds(event, "dur"))};
  event["ts"] = microseconds(span.begin);
  event["dur"] = microseconds(span.end - span.begin);
  if (event.contains("args") && event["args"].contains("launched"))
    event["args"]["launched"] = microseconds(part.place(nanoseconds(event["args"], "launched")));
  return span;
}

// Writes a file beside its place, where it appears when it is whole.
class JoinedFile {
 public:
  explicit JoinedFile(const std::string& file)
      : file_(file), path_(file + ".tmp" + std::to_string(getpid())), stream_(path_) {
    check();
  }
  ~JoinedFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  JoinedFile(const JoinedFile&) = delete;

  void begin(const Json& about) {
    stream_ << "{\"otherData\":" << about.dump()
            << ",\n\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  }
  void add(const std::string& event) {
    if (std::exchange(has_events_, true)) stream_ << ",\n";
    stream_ << event;
  }
  void end() {
    stream_ << "\n]}\n";
    stream_.close();
    check();
    fs::rename(path_, file_);
  }

 private:
  void check() const {
    if (!stream_)
      throw std::runtime_error("--trace " + file_ +
                               ": it cannot be written: " + std::strerror(errno ? errno : EIO));
  }

  std::string file_, path_;
  std::ofstream stream_;
  bool has_events_ = false;
};

// Copies the events of a part, moved to the common clock.
RankTimes copy_events(const TracePart& part, JoinedFile& out, JoinedTrace& joined) {
  RankTimes times;
  times.rank = part.rank;
  const auto dropped = part.about.value("dropped_events", std::uint64_t(0));
  times.dropped = dropped > 0;
  joined.dropped += dropped;
  std::ifstream stream(part.path);
  std::string line;
  std::getline(stream, line);
  std::getline(stream, line);
  while (std::getline(stream, line) && line != "]}") {
    if (!line.empty() && line.back() == ',') line.pop_back();
    try {
      Json event = Json::parse(line);
      if (event.at("ph") == "X") {
        const TimeSpan span = move_event(part, event);
        note_event(times, event, span);
        line = event.dump();
      }
    } catch (const Json::exception& error) {
      joined.damaged.push_back(part.path + ": " + error.what());
      return times;
    }
    out.add(line);
  }
  if (line != "]}") joined.damaged.push_back(part.path + ": its end is missing");
  std::sort(times.updates.begin(), times.updates.end());
  return times;
}

void note_device_problems(const TracePart& part, JoinedTrace& joined) {
  const auto problems = part.about.find("device_problems");
  if (problems == part.about.end() || !problems->is_array()) return;
  for (const Json& problem : *problems)
    if (problem.is_string())
      joined.device_problems[problem.get<std::string>()].push_back(part.rank);
}

void add_steps(const std::vector<TrainingStep>& steps, const std::vector<RankTimes>& ranks,
               JoinedFile& out) {
  if (steps.empty()) return;
  for (const RankTimes& rank : ranks)
    out.add(Json({{"ph", "M"},
                  {"pid", rank.rank},
                  {"tid", kStepsTrack},
                  {"name", "thread_name"},
                  {"args", {{"name", "steps"}}}})
                .dump());
  for (const TrainingStep& step : steps) {
    for (const RankStep& rank : step.ranks) {
      Json details = {{"exposed communication, us", microseconds(rank.exposed)},
                      {"waiting for data, us", microseconds(rank.data)}};
      if (rank.busy >= 0)
        details["bubble, us"] = microseconds(std::max<std::int64_t>(0, rank.length() - rank.busy));
      if (rank.rank == step.slowest) details["slowest"] = true;
      out.add(Json({{"ph", "X"},
                    {"pid", rank.rank},
                    {"tid", kStepsTrack},
                    {"ts", microseconds(rank.span.begin)},
                    {"dur", microseconds(rank.length())},
                    {"cat", "step"},
                    {"name", "step " + std::to_string(step.number)},
                    {"args", details}})
                  .dump());
    }
  }
}

// The trace is renamed to its place: a device or a pipe there would be gone.
void refuse_special(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  if (S_ISDIR(status.st_mode)) throw UserError("--trace '" + file + "' is a folder; give a file");
  throw UserError("--trace '" + file +
                  "' is a device, a pipe or a socket, which the trace would replace; give a "
                  "regular file or a new name");
}

// The full name of the file that the links at this name lead to, so that the file is replaced and
// not the link. In a folder that others may write, a link of theirs could name any file.
std::string follow_links(const std::string& file) {
  constexpr int kMostLinks = 40;  // as the kernel's
  fs::path at = fs::absolute(file).lexically_normal();
  for (int i = 0; i < kMostLinks; ++i) {
    struct stat status {};
    if (lstat(at.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return at.string();
    if (status.st_uid != geteuid() && status.st_uid != 0)
      throw UserError("--trace '" + file + "': " + at.string() +
                      " is a symbolic link of another user; give another file");
    at = at.parent_path() / fs::read_symlink(at);
  }
  throw UserError("--trace '" + file + "': too many symbolic links; give another file");
}

// Whether there was one.
bool remove_part(const std::string& path) {
  std::error_code ignored;
  return is_part(path) && fs::remove(path, ignored);
}

}  // namespace

std::string prepare_trace(const std::string& file) {
  refuse_special(file);
  const std::string path = follow_links(file);
  const fs::path folder = fs::path(path).parent_path();
  if (access(folder.c_str(), W_OK) != 0)
    throw UserError("--trace '" + file + "' cannot be written: " + std::strerror(errno) +
                    "; give a file in a folder that can");
  for (int rank = 0; remove_part(part_name(path, rank));) ++rank;
  return path;
}

void check_trace_parts(const std::string& file, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) refuse_special(part_name(file, rank));
}

void remove_trace_parts(const std::string& file, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) remove_part(part_name(file, rank));
}

JoinedTrace join_trace(const std::string& file, int ranks) {
  JoinedTrace joined;
  std::vector<TracePart> parts;
  for (int rank = 0; rank < ranks; ++rank)
    if (auto part = open_part(file, rank, joined)) parts.push_back(std::move(*part));
  if (parts.empty()) return joined;
  place_parts(parts, joined);
  JoinedFile out(file);
  Json processes = Json::array();
  for (const TracePart& part : parts) processes.push_back(part.about);
  out.begin({{"format", "catena trace 1"}, {"ranks", ranks}, {"processes", processes}});
  for (const TracePart& part : parts) {
    joined.ranks.push_back(copy_events(part, out, joined));
    note_device_problems(part, joined);
  }
  joined.steps = find_steps(joined.ranks);
  add_steps(joined.steps, joined.ranks, out);
  out.end();
  for (const TracePart& part : parts) remove_part(part.path);
  return joined;
}

std::string describe_trace(const std::string& file, const JoinedTrace& joined) {
  std::string text;
  const auto add = [&](const std::string& line) { text += "catena-run: trace: " + line + "\n"; };
  for (const std::string& problem : joined.damaged) add(problem);
  if (!joined.missing.empty())
    add("nothing of " + name_ranks(joined.missing) +
        ": killed by a signal, no program that uses catena, a folder that the ranks could not "
        "write, or a folder of another host");
  if (joined.ranks.empty()) {
    add("there is no " + file);
    return text;
  }
  for (const auto& [problem, ranks] : joined.device_problems)
    add("GPUs of " + name_ranks(ranks) + ": " + problem);
  if (!joined.unaligned.empty())
    add(name_ranks(joined.unaligned) +
        " placed by the time of day: clocks were not compared, as "
        "create_communicator does");
  if (joined.dropped > 0)
    add(std::to_string(joined.dropped) + " older events did not fit; the last ones are there");
  char error[64];
  std::snprintf(error, sizeof error, "%.1f us", microseconds(joined.clock_error));
  const std::string clocks = joined.ranks.size() > joined.unaligned.size() + 1
                                 ? ", clocks aligned to " + std::string(error)
                                 : "";
  add(file + " has " + std::to_string(joined.ranks.size()) +
      (joined.ranks.size() == 1 ? " rank" : " ranks") + " and " +
      std::to_string(joined.steps.size()) + " steps" + clocks + "; open it in ui.perfetto.dev");
  return text + describe_steps(joined.ranks, joined.steps);
}

}  // namespace catena::launch
