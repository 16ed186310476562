#include "job/trace_join.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Parts of ranks as the library writes them.
class TraceJoin : public ::testing::Test {
 protected:
  std::string part(int rank) const { return file_ + ".rank" + std::to_string(rank); }

  // `about` adds to what the first line says.
  void write_part(int rank, Json about, const std::vector<Json>& events,
                  const std::string& end = "\n]}\n") const {
    about["rank"] = rank;
    std::ofstream out(part(rank));
    out << Json{{"otherData", about}}.dump().erase(Json{{"otherData", about}}.dump().size() - 1)
        << ",\n\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (std::size_t i = 0; i < events.size(); ++i) out << (i ? ",\n" : "") << events[i].dump();
    out << end;
  }

  static Json event(int rank, double ts, double dur, const char* kind, const char* name) {
    return {{"ph", "X"},  {"pid", rank}, {"tid", 1},    {"ts", ts},
            {"dur", dur}, {"cat", kind}, {"name", name}};
  }

  Json joined() const {
    std::ifstream in(file_);
    return Json::parse(in);
  }
  Json joined_event(const std::string& name) const {
    const Json whole = joined();
    for (const Json& each : whole.at("traceEvents"))
      if (each.at("name") == name) return each;
    return {};
  }

  const TempFolder folder_;
  const std::string file_ = folder_ / "trace.json";
};

// Rank 1 started 2 ms after rank 0.
TEST_F(TraceJoin, MovesTimesToOneClock) {
  write_part(0, {{"wall_ns", 100}, {"clock_offset_ns", 0}, {"clock_error_ns", 0}},
             {event(0, 5000, 10, "function", "first")});
  write_part(1, {{"wall_ns", 777}, {"clock_offset_ns", 2'000'500}, {"clock_error_ns", 800}},
             {event(1, 3000, 10, "function", "second")});
  const JoinedTrace result = join_trace(file_, 2);
  EXPECT_TRUE(result.unaligned.empty());
  EXPECT_EQ(result.clock_error, 800);
  EXPECT_DOUBLE_EQ(joined_event("first").at("ts").get<double>(), 5000);
  EXPECT_DOUBLE_EQ(joined_event("second").at("ts").get<double>(), 5000.5);
  EXPECT_FALSE(fs::exists(part(0)) || fs::exists(part(1)));
  EXPECT_EQ(joined().at("otherData").at("processes").size(), 2u);
  expect_contains(describe_trace(file_, result), {"2 ranks and 0 steps, clocks aligned to 0.8 us"});
}

// The first time is that of the rank that started first.
TEST_F(TraceJoin, TimesBeginWithTheFirstRank) {
  write_part(0, {{"wall_ns", 0}, {"clock_offset_ns", 0}}, {event(0, 1, 1, "range", "late")});
  write_part(1, {{"wall_ns", 0}, {"clock_offset_ns", -4000}}, {event(1, 1, 1, "range", "early")});
  join_trace(file_, 2);
  EXPECT_DOUBLE_EQ(joined_event("early").at("ts").get<double>(), 1);
  EXPECT_DOUBLE_EQ(joined_event("late").at("ts").get<double>(), 5);
}

// The clock of rank 1 loses 1 us in 1 ms against that of rank 0.
TEST_F(TraceJoin, ClocksDriftApart) {
  write_part(0, {{"wall_ns", 0}, {"clock_offset_ns", 0}}, {event(0, 0, 1, "range", "zero")});
  write_part(1,
             {{"wall_ns", 0},
              {"clock_at_ns", 1'000'000},
              {"clock_offset_ns", 5000},
              {"clock_error_ns", 100},
              {"clock_later", {{"at_ns", 3'000'000}, {"offset_ns", 7000}, {"error_ns", 300}}}},
             {event(1, 500, 10, "range", "before"), event(1, 1000, 1000, "range", "between"),
              event(1, 4000, 10, "range", "after")});
  const JoinedTrace result = join_trace(file_, 2);
  EXPECT_EQ(result.clock_error, 300);
  EXPECT_DOUBLE_EQ(joined_event("before").at("ts").get<double>(), 505);
  EXPECT_DOUBLE_EQ(joined_event("between").at("ts").get<double>(), 1005);
  EXPECT_DOUBLE_EQ(joined_event("between").at("dur").get<double>(), 1001);
  EXPECT_DOUBLE_EQ(joined_event("after").at("ts").get<double>(), 4007);
}

// A rank that failed before its clock was compared.
TEST_F(TraceJoin, UsesTheTimeOfDayOtherwise) {
  write_part(0, {{"wall_ns", 1'000'000}, {"clock_offset_ns", 0}},
             {event(0, 0, 1, "range", "first")});
  write_part(1, {{"wall_ns", 1'030'000}}, {event(1, 0, 1, "range", "second")});
  const JoinedTrace result = join_trace(file_, 2);
  EXPECT_EQ(result.unaligned, std::vector<int>{1});
  EXPECT_DOUBLE_EQ(joined_event("second").at("ts").get<double>(), 30);
  expect_contains(describe_trace(file_, result), {"rank 1 placed by the time of day"});
}

TEST_F(TraceJoin, MarksSteps) {
  for (const int rank : {0, 1}) {
    write_part(rank, {{"wall_ns", 0}, {"clock_offset_ns", 0}},
               {event(rank, 0, 10, "update", "Optimizer::update"),
                event(rank, 12, rank == 0 ? 60 : 20, "communication", "all_reduce"),
                event(rank, 90, 10, "update", "Optimizer::update")});
  }
  const JoinedTrace result = join_trace(file_, 2);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(result.steps[0].slowest, 1);
  std::vector<Json> steps;
  const Json whole = joined();
  for (const Json& each : whole.at("traceEvents"))
    if (each.at("name") == "step 2") steps.push_back(each);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_DOUBLE_EQ(steps[0].at("ts").get<double>(), 10);
  EXPECT_DOUBLE_EQ(steps[0].at("dur").get<double>(), 90);
  EXPECT_DOUBLE_EQ(steps[0].at("args").at("exposed communication, us").get<double>(), 60);
  EXPECT_FALSE(steps[0].at("args").contains("slowest"));
  EXPECT_EQ(steps[1].at("args").at("slowest"), true);
}

// The spans of a GPU are on the clock of the host of their rank.
TEST_F(TraceJoin, HasTheSpansOfGpus) {
  write_part(0, {{"wall_ns", 0}, {"clock_offset_ns", 0}}, {event(0, 0, 1, "range", "zero")});
  Json kernel = event(1, 30, 10, "kernel", "softmax");
  kernel["args"] = {{"launched", 12.5}};
  write_part(1,
             {{"wall_ns", 0},
              {"clock_offset_ns", 2'000'000},
              {"device_problems", {"CUPTI has dropped 3 records"}}},
             {kernel, event(1, 35, 10, "collective", "ncclDevKernel_AllReduce")});
  const JoinedTrace result = join_trace(file_, 2);
  EXPECT_DOUBLE_EQ(joined_event("softmax").at("ts").get<double>(), 2030);
  EXPECT_DOUBLE_EQ(joined_event("softmax").at("args").at("launched").get<double>(), 2012.5);
  const DeviceTimes& device = result.ranks.at(1).device;
  EXPECT_EQ(device.kernels, (TimeSpans{{2'030'000, 2'040'000}}));
  EXPECT_EQ(device.collectives, (TimeSpans{{2'035'000, 2'045'000}}));
  ASSERT_EQ(device.work.size(), 1u);
  EXPECT_EQ(device.work[0].launched, 2'012'500);
  EXPECT_FALSE(result.ranks.at(0).device.any());
  expect_contains(describe_trace(file_, result), {"GPUs of rank 1: CUPTI has dropped 3 records"});
}

TEST_F(TraceJoin, MarksTheBubblesOfAPipeline) {
  write_part(0, {{"wall_ns", 0}, {"clock_offset_ns", 0}},
             {event(0, 0, 10, "step", "Pipeline::step"), event(0, 20, 30, "step", "Pipeline::step"),
              event(0, 30, 10, "pipeline", "F0.0")});
  const JoinedTrace result = join_trace(file_, 1);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(joined_event("step 2").at("args").at("bubble, us").get<double>(), 30);
}

// An update that an exception of the trace's end cut is no step.
TEST_F(TraceJoin, OpenUpdatesEndNoStep) {
  Json open = event(0, 50, 10, "update", "Optimizer::update");
  open["args"] = {{"open", true}};
  write_part(0, {{"wall_ns", 0}}, {event(0, 0, 10, "update", "Optimizer::update"), open});
  EXPECT_TRUE(join_trace(file_, 1).steps.empty());
}

TEST_F(TraceJoin, NamesWhatIsMissing) {
  write_part(1, {{"wall_ns", 0}, {"dropped_events", 7}}, {event(1, 0, 1, "range", "there")});
  ASSERT_EQ(mkfifo(part(2).c_str(), 0600), 0);  // somebody else's
  const JoinedTrace result = join_trace(file_, 3);
  EXPECT_EQ(result.missing, (std::vector<int>{0, 2}));
  EXPECT_EQ(result.dropped, 7u);
  EXPECT_FALSE(joined_event("there").is_null());
  const std::string text = describe_trace(file_, result);
  expect_contains(text,
                  {"nothing of ranks 0, 2: killed by a signal", "7 older events did not fit"});
}

TEST_F(TraceJoin, WithoutPartsThereIsNoFile) {
  const JoinedTrace result = join_trace(file_, 2);
  EXPECT_FALSE(fs::exists(file_));
  const std::string text = describe_trace(file_, result);
  expect_contains(text, {"there is no " + file_, "nothing of ranks 0-1: "});
}

// What a foreign hand has cut or spoilt: the events before it are there, and the file is whole.
TEST_F(TraceJoin, ReadsDamagedParts) {
  write_part(0, {{"wall_ns", 0}}, {event(0, 0, 1, "range", "whole")}, ",\n{\"ph\":\"X\",\"pi");
  write_part(1, {{"wall_ns", 0}}, {event(1, 0, 1, "range", "cut")}, "\n");
  std::ofstream(part(2)) << "no trace\n";
  const JoinedTrace result = join_trace(file_, 3);
  EXPECT_EQ(result.damaged.size(), 3u);
  EXPECT_FALSE(joined_event("whole").is_null());
  EXPECT_FALSE(joined_event("cut").is_null());
}

// Of an attempt in which a rank was killed.
TEST_F(TraceJoin, PartsOfAnAttemptGo) {
  write_part(0, {{"wall_ns", 0}}, {});
  write_part(2, {{"wall_ns", 0}}, {});
  EXPECT_NO_THROW(check_trace_parts(file_, 3));
  remove_trace_parts(file_, 3);
  EXPECT_FALSE(fs::exists(part(0)) || fs::exists(part(2)));
}

TEST_F(TraceJoin, IsPrepared) {
  write_part(0, {{"wall_ns", 0}}, {});
  write_part(1, {{"wall_ns", 0}}, {});
  EXPECT_EQ(prepare_trace(file_), file_);
  EXPECT_FALSE(fs::exists(part(0)) || fs::exists(part(1))) << "of an earlier job";
  EXPECT_THROW(prepare_trace(folder_ / "missing/trace.json"), UserError);
  EXPECT_THROW(prepare_trace(folder_.path()), UserError);
}

TEST_F(TraceJoin, DevicesAndPipesAreRefused) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  try {
    prepare_trace(file_);
    ADD_FAILURE() << "a pipe was accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.exit_code(), 2);
    expect_contains(error.what(), {"is a device, a pipe or a socket"});
  }
  const std::string link = folder_ / "link";
  fs::create_symlink("trace.json", link);
  EXPECT_THROW(prepare_trace(link), UserError);
  EXPECT_TRUE(fs::is_fifo(file_));
  // A name that a part would have.
  fs::rename(file_, part(0));
  EXPECT_EQ(prepare_trace(file_), file_);
  remove_trace_parts(file_, 1);
  EXPECT_TRUE(fs::is_fifo(part(0)));
  EXPECT_THROW(check_trace_parts(file_, 1), UserError);
}

// The file is replaced, or made, and the link stays.
TEST_F(TraceJoin, LinksAreFollowed) {
  fs::create_directory(folder_ / "below");
  const std::string link = folder_ / "below/link";
  const std::string second = folder_ / "second";
  fs::create_symlink("../trace.json", link);
  fs::create_symlink(link, second);
  for (const char* state : {"missing", "there"}) {
    EXPECT_TRUE(fs::weakly_canonical(prepare_trace(second)) == fs::path(file_)) << state;
    std::ofstream(file_) << "old";
  }
  fs::remove(file_);
  fs::create_symlink("trace.json", file_);
  EXPECT_THROW(prepare_trace(file_), UserError) << "a link to itself";
}

}  // namespace
}  // namespace catena::launch
