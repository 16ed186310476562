#include "catena/core/device_trace.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "temp_folder.h"

namespace catena::tracing {
namespace {

using Json = nlohmann::json;

int64_t monotonic_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// Hands over what a test gives it.
class PretendedTracer final : public DeviceTracer {
 public:
  void start(size_t spans_per_track) noexcept override {
    ++starts;
    limit = spans_per_track;
  }
  DeviceActivity finish(bool patient) noexcept override {
    ++finishes;
    was_patient = patient;
    return std::exchange(activity, {});
  }
  int starts = 0, finishes = 0;
  bool was_patient = false;
  size_t limit = 0;
  DeviceActivity activity;
};

// A tracer is never taken away, so all tests share one.
PretendedTracer& tracer() {
  static auto* const instance = [] {
    auto* made = new PretendedTracer;
    add_device_tracer(*made);
    return made;
  }();
  return *instance;
}

DeviceSpan span(int64_t begin, int64_t end, uint32_t name = 0) {
  DeviceSpan made;
  made.begin = begin;
  made.end = end;
  made.name = name;
  return made;
}

std::vector<Json> events_of(const Json& trace, const std::string& category) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents"))
    if (event.value("cat", "") == category) found.push_back(event);
  return found;
}

std::string track_of(const Json& trace, const Json& event) {
  for (const Json& each : trace.at("traceEvents"))
    if (each.at("ph") == "M" && each.at("name") == "thread_name" &&
        each.at("tid") == event.at("tid"))
      return each.at("args").at("name");
  return "";
}

TEST(DeviceTrace, StreamsHaveTracks) {
  PretendedTracer& device = tracer();
  const TempFolder folder;
  start(folder / "t.json", {.events_per_thread = 77});
  EXPECT_EQ(device.limit, 77u);
  { const Range range("host"); }
  const int64_t now = monotonic_now();
  device.activity.names = {"softmax<float>", "copy host to device"};
  DeviceSpan copy = span(now + 500, now + 2500, 1);
  copy.category = Category::kCopy;
  copy.bytes = 4096;
  copy.in_graph = true;
  copy.launched = now - 1000;
  device.activity.tracks = {{"cuda:0 stream 7", {span(now, now + 1000)}, 2},
                            {"cuda:0 stream 9", {copy}, 1}};
  ASSERT_TRUE(stop());
  const Json trace = Json::parse(read_file(folder / "t.json"));
  const auto kernels = events_of(trace, "kernel"), copies = events_of(trace, "copy");
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(kernels[0].at("name"), "softmax<float>");
  EXPECT_NEAR(kernels[0].at("dur"), 1.0, 1e-9);
  EXPECT_FALSE(kernels[0].contains("args"));
  EXPECT_EQ(track_of(trace, kernels[0]), "cuda:0 stream 7");
  EXPECT_EQ(track_of(trace, copies[0]), "cuda:0 stream 9");
  EXPECT_EQ(copies[0].at("args").at("bytes"), 4096);
  EXPECT_EQ(copies[0].at("args").at("graph"), true);
  EXPECT_NEAR(copies[0].at("ts").get<double>() - copies[0].at("args").at("launched").get<double>(),
              1.5, 1e-6);
  EXPECT_EQ(trace.at("otherData").at("dropped_events"), 3);
  EXPECT_FALSE(trace.at("otherData").contains("device_problems"));
  // On the clock of the host's ranges.
  EXPECT_GE(kernels[0].at("ts"), events_of(trace, "range").at(0).at("ts"));
}

// Kernels may begin before the one ahead of them ends; viewers would drop the second.
TEST(DeviceTrace, OverlappingSpansLieBesideEachOther) {
  PretendedTracer& device = tracer();
  const TempFolder folder;
  start(folder / "t.json");
  const int64_t now = monotonic_now();
  device.activity.names = {"first", "early", "third"};
  device.activity.tracks = {
      {"cuda:0 stream 7",
       {span(now + 900, now + 2000, 1), span(now, now + 1000, 0), span(now + 1000, now + 1500, 2)},
       0},
      {"cuda:0 stream 8", {span(now, now + 10, 0)}, 0}};
  stop();
  const Json trace = Json::parse(read_file(folder / "t.json"));
  const auto kernels = events_of(trace, "kernel");
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].at("name"), "first");
  EXPECT_EQ(track_of(trace, kernels[0]), "cuda:0 stream 7");
  EXPECT_EQ(kernels[1].at("name"), "early");
  EXPECT_EQ(track_of(trace, kernels[1]), "cuda:0 stream 7 (2)");
  EXPECT_EQ(kernels[2].at("name"), "third");
  EXPECT_EQ(kernels[2].at("tid"), kernels[0].at("tid"));
  EXPECT_EQ(track_of(trace, kernels[3]), "cuda:0 stream 8");
}

// The innermost call that was open when the host asked for the work.
TEST(DeviceTrace, SpansSayWhoseTheyAre) {
  PretendedTracer& device = tracer();
  const TempFolder folder;
  start(folder / "t.json");
  std::vector<int64_t> times;
  const auto note_time = [&times] {
    usleep(100);
    times.push_back(monotonic_now());
    usleep(100);
  };
  {
    const Range outer("Linear", Category::kFunction);
    note_time();
    {
      const Range mine("a range of the user");
      note_time();
    }
    {
      const Range inner("matmul", Category::kFunction);
      note_time();
    }
    note_time();
  }
  note_time();
  {
    const Range call("all_reduce");
    describe("all_reduce", Category::kCommunication, {.bytes = 4096});
    note_time();
  }
  const int64_t later = monotonic_now();
  std::vector<DeviceSpan> spans;
  for (size_t i = 0; i < times.size(); ++i) {
    spans.push_back(span(later + int64_t(i) * 100, later + int64_t(i) * 100 + 10));
    spans.back().launched = times[i];
  }
  spans.back().category = Category::kCollective;
  device.activity.names = {"k"};
  device.activity.tracks = {{"cuda:0 stream 7", spans, 0}};
  stop();
  const Json trace = Json::parse(read_file(folder / "t.json"));
  std::vector<std::string> owners;
  for (const Json& kernel : events_of(trace, "kernel"))
    owners.push_back(kernel.at("args").value("of", ""));
  EXPECT_EQ(owners, std::vector<std::string>({"Linear", "Linear", "matmul", "Linear", ""}));
  const Json collective = events_of(trace, "collective").at(0);
  EXPECT_EQ(collective.at("args").at("of"), "all_reduce");
  EXPECT_EQ(collective.at("args").at("bytes"), 4096);
}

TEST(DeviceTrace, WorkOfTwoThreadsIsNobodys) {
  PretendedTracer& device = tracer();
  const TempFolder folder;
  start(folder / "t.json");
  begin("here", Category::kFunction);
  DeviceSpan both = span(0, 0), one = both;
  std::thread([&] {
    const Range there("there", Category::kBackward);
    usleep(100);
    both.launched = monotonic_now();
    usleep(100);
  }).join();
  usleep(100);
  one.launched = monotonic_now();
  usleep(100);
  end();
  both.begin = monotonic_now();
  both.end = one.begin = both.begin + 10;
  one.end = one.begin + 10;
  device.activity.names = {"k"};
  device.activity.tracks = {{"cuda:0 stream 7", {both, one}, 0}};
  stop();
  const auto kernels = events_of(Json::parse(read_file(folder / "t.json")), "kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_FALSE(kernels[0].at("args").contains("of"));
  EXPECT_EQ(kernels[1].at("args").at("of"), "here");
}

TEST(DeviceTrace, SaysWhatIsMissing) {
  PretendedTracer& device = tracer();
  const TempFolder folder;
  start(folder / "t.json");
  const int64_t before = monotonic_now() - 1'000'000'000;  // of an earlier trace
  device.activity.names = {"old"};
  device.activity.tracks = {{"cuda:0 stream 7", {span(before, before + 10)}, 0}};
  device.activity.problem = "CUPTI cannot be loaded";
  stop();
  const Json trace = Json::parse(read_file(folder / "t.json"));
  EXPECT_TRUE(events_of(trace, "kernel").empty());
  EXPECT_EQ(trace.at("otherData").at("device_problems"), Json({"CUPTI cannot be loaded"}));
}

// The plug-in of a device is loaded when it is first used, in the middle of a trace.
TEST(DeviceTrace, TracersMayJoinLater) {
  tracer();
  const TempFolder folder;
  static auto* const late = new PretendedTracer;
  const int finished = tracer().finishes;
  start(folder / "t.json");
  add_device_tracer(*late);
  EXPECT_EQ(late->starts, 1);
  stop();
  EXPECT_EQ(late->finishes, 1);
  EXPECT_EQ(tracer().finishes, finished + 1);
  EXPECT_TRUE(late->was_patient);
  EXPECT_FALSE(stop());
  EXPECT_EQ(late->finishes, 1);
  start(folder / "t.json");
  stop_quietly();
  EXPECT_FALSE(late->was_patient) << "the process is being ended";
}

}  // namespace
}  // namespace catena::tracing
