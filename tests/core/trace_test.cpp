#include "catena/core/trace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catena/core/error.h"
#include "catena/core/memory_profile.h"
#include "catena/core/profiler_range.h"
#include "error_text.h"
#include "profiler_recorder.h"
#include "temp_folder.h"

namespace catena {
namespace {

using Json = nlohmann::json;

struct TraceFolder : TempFolder {
  std::string file = *this / "trace.json";
  Json trace() const { return Json::parse(read_file(file)); }
  // Events of one kind ("X" or "M"), in the order of the file.
  std::vector<Json> events(const std::string& phase = "X") const {
    std::vector<Json> found;
    const Json whole = trace();
    for (const Json& event : whole.at("traceEvents"))
      if (event.at("ph") == phase) found.push_back(event);
    return found;
  }
  Json event(const std::string& name) const {
    for (const Json& each : events())
      if (each.at("name") == name) return each;
    return {};
  }
};

double end_of(const Json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

TEST(Trace, IsOffUntilItStarts) {
  EXPECT_FALSE(tracing::active());
  EXPECT_FALSE(tracing::stop());
  const TraceFolder folder;
  { const tracing::Range before("before"); }
  tracing::start(folder.file);
  EXPECT_TRUE(tracing::active());
  { const tracing::Range range("during"); }
  EXPECT_TRUE(tracing::stop());
  { const tracing::Range after("after"); }
  ASSERT_EQ(folder.events().size(), 1u);
  EXPECT_EQ(folder.events()[0].at("name"), "during");
  EXPECT_EQ(folder.entries(), 1) << "nothing but the file is left";
}

TEST(Trace, RangesNest) {
  const TraceFolder folder;
  tracing::start(folder.file);
  {
    const ProfilerRange outer("outer");
    tracing::begin("inner", tracing::Category::kData);
    tracing::end();
    const CallScope call("call");
    const CallScope backward("backward of call");
  }
  tracing::stop();
  const std::vector<Json> events = folder.events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].at("name"), "outer") << "the outermost comes first";
  EXPECT_EQ(events[0].at("cat"), "range");
  EXPECT_EQ(events[1].at("name"), "inner");
  EXPECT_EQ(events[1].at("cat"), "data");
  EXPECT_EQ(events[2].at("cat"), "function");
  EXPECT_EQ(events[3].at("cat"), "backward");
  for (const Json& event : events) {
    EXPECT_GE(event.at("ts"), events[0].at("ts"));
    EXPECT_LE(end_of(event), end_of(events[0]) + 1e-6);
  }
  EXPECT_LE(end_of(events[1]), events[2].at("ts").get<double>() + 1e-6);
}

TEST(Trace, EndsWithAnException) {
  const TraceFolder folder;
  tracing::start(folder.file);
  try {
    const tracing::Range range("fails");
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  tracing::stop();
  EXPECT_FALSE(folder.event("fails").contains("args"));
}

TEST(Trace, RangesThatAreOpenSaySo) {
  const TraceFolder folder;
  tracing::start(folder.file);
  tracing::begin("open");
  tracing::stop();
  EXPECT_EQ(folder.event("open").at("args"), Json({{"open", true}}));
  // Its end belongs to no later trace.
  tracing::start(folder.file);
  tracing::begin("second");
  tracing::end();
  tracing::end();
  tracing::stop();
  ASSERT_EQ(folder.events().size(), 1u);
  EXPECT_EQ(folder.events()[0].at("name"), "second");
}

TEST(Trace, ThreadsHaveTracksOfTheirOwn) {
  const TraceFolder folder;
  tracing::start(folder.file);
  { const tracing::Range range("here"); }
  std::thread([] {
    tracing::name_thread("helper");
    const tracing::Range range("there");
  }).join();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 500; ++k) const tracing::Range range("many");
    });
  for (std::thread& thread : threads) thread.join();
  tracing::stop();
  EXPECT_EQ(folder.events().size(), 2u + 4 * 500);
  EXPECT_NE(folder.event("here").at("tid"), folder.event("there").at("tid"));
  bool named = false;
  for (const Json& event : folder.events("M"))
    named |= event.at("args").at("name") == "helper" &&
             event.at("tid") == folder.event("there").at("tid");
  EXPECT_TRUE(named);
}

// Ranges begin and end in one thread while another writes.
TEST(Trace, StopsWhileOthersRecord) {
  const TraceFolder folder;
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done) const tracing::Range range("busy");
  });
  for (int i = 0; i < 20; ++i) {
    tracing::start(folder.file);
    { const tracing::Range range("mine"); }
    tracing::stop();
    EXPECT_FALSE(folder.event("mine").is_null());
  }
  done = true;
  busy.join();
}

TEST(Trace, KeepsTheLastEvents) {
  const TraceFolder folder;
  tracing::start(folder.file, {.events_per_thread = 3});
  for (int i = 0; i < 10; ++i) const tracing::Range range("event " + std::to_string(i));
  tracing::stop();
  const std::vector<Json> events = folder.events();
  ASSERT_EQ(events.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(events[size_t(i)].at("name"), "event " + std::to_string(7 + i));
  EXPECT_EQ(folder.trace().at("otherData").at("dropped_events"), 7);
}

// Programs that count in their names do not fill the memory.
TEST(Trace, NamesAreBounded) {
  const TraceFolder folder;
  tracing::start(folder.file, {.events_per_thread = 2});
  for (int i = 0; i < 70000; ++i) const tracing::Range range("name " + std::to_string(i));
  tracing::stop();
  EXPECT_EQ(folder.events().back().at("name"), "(further names)");
}

TEST(Trace, AnyNameIsReadable) {
  const TraceFolder folder;
  const std::string odd = "quote \" back \\ line \n tab \t bell \a umlaut \xC3\xA4";
  tracing::start(folder.file);
  { const tracing::Range range(odd); }
  { const tracing::Range range("no UTF-8: \xFF"); }
  tracing::stop();
  EXPECT_EQ(folder.events()[0].at("name"), odd);
  EXPECT_EQ(folder.events()[1].at("name"), "no UTF-8: \xEF\xBF\xBD");
}

TEST(Trace, DescribesTheInnermostRange) {
  const TraceFolder folder;
  tracing::start(folder.file);
  {
    const tracing::Range range("all_reduce");
    tracing::describe("another", tracing::Category::kWait, {.bytes = 1});
    tracing::describe("all_reduce", tracing::Category::kCommunication,
                      {.bytes = 4096, .peer = 2, .serves = "gradients"});
  }
  tracing::stop();
  const Json event = folder.event("all_reduce");
  EXPECT_EQ(event.at("cat"), "communication");
  EXPECT_EQ(event.at("args"), Json({{"bytes", 4096}, {"peer", 2}, {"serves", "gradients"}}));
}

TEST(Trace, TellsOfTheProcess) {
  const TraceFolder folder;
  tracing::start(folder.file);
  tracing::set_clock(-1500, 20);
  tracing::set_clock(7, 8);
  tracing::set_clock(-1200, 30);
  tracing::stop();
  const Json about = folder.trace().at("otherData");
  EXPECT_EQ(about.at("rank"), 0);
  EXPECT_EQ(about.at("ranks"), 1);
  EXPECT_EQ(about.at("process"), getpid());
  EXPECT_EQ(about.at("clock_offset_ns"), -1500);
  EXPECT_EQ(about.at("clock_error_ns"), 20);
  EXPECT_GE(about.at("clock_at_ns"), 0);
  EXPECT_EQ(about.at("clock_later").at("offset_ns"), -1200) << "the last measurement";
  EXPECT_EQ(about.at("clock_later").at("error_ns"), 30);
  EXPECT_GE(about.at("clock_later").at("at_ns"), about.at("clock_at_ns"));
}

// Profilers hear what they heard before.
TEST(Trace, HandsRangesOn) {
  const TraceFolder folder;
  const testing::RecordedRanges recorded;
  tracing::start(folder.file);
  { const ProfilerRange range("both"); }
  tracing::stop();
  { const ProfilerRange range("later"); }
  EXPECT_EQ(recorded.text(), "both()later()");
  EXPECT_EQ(folder.event("both").at("cat"), "range");
  EXPECT_TRUE(folder.event("later").is_null());
}

TEST(Trace, Mistakes) {
  const TraceFolder folder;
  expect_contains(error_of<Error>([&] { tracing::start("/nowhere/trace.json"); }),
                  {"trace: /nowhere/trace.json cannot be written: No such file"});
  expect_contains(
      error_of<ValueError>([&] { tracing::start(folder.file, {.events_per_thread = 0}); }),
      {"events_per_thread is 0"});
  expect_contains(error_of<ValueError>([] { tracing::start(""); }), {"name of the file is empty"});
  tracing::start(folder.file);
  expect_contains(error_of<ValueError>([&] { tracing::start(folder.file); }),
                  {"is being recorded; call tracing::stop() first"});
  tracing::stop();
}

TEST(Trace, ReplacesNothingButAFile) {
  const TraceFolder folder;
  ASSERT_EQ(mkfifo(folder.file.c_str(), 0600), 0);
  expect_contains(error_of<Error>([&] { tracing::start(folder.file); }),
                  {"trace.json is not a regular file"});
  EXPECT_FALSE(tracing::active());
  EXPECT_TRUE(std::filesystem::is_fifo(folder.file));
  std::filesystem::remove(folder.file);
  const std::string link = folder / "link";
  std::filesystem::create_symlink("trace.json", link);
  for (const char* name : {"first", "second"}) {
    tracing::start(link);
    { const tracing::Range range(name); }
    EXPECT_TRUE(tracing::stop());
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_FALSE(folder.event(name).is_null()) << name;
  }
  tracing::start(folder.file);
  std::filesystem::remove(folder.file);
  ASSERT_EQ(mkfifo(folder.file.c_str(), 0600), 0);
  expect_contains(error_of<Error>([] { tracing::stop(); }), {"is not a regular file"});
  EXPECT_TRUE(std::filesystem::is_fifo(folder.file));
}

// Runs `body` in a child and returns its wait status.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(Trace, IsWrittenAtTheEndOfTheProgram) {
  const TraceFolder folder;
  EXPECT_EQ(in_child([&] {
              tracing::start(folder.file);
              tracing::begin("unfinished");
            }),
            0);
  EXPECT_EQ(folder.event("unfinished").at("args").at("open"), true);
}

TEST(Trace, IsWrittenWhenAnExceptionEndsTheProgram) {
  const TraceFolder folder;
  const int status = in_child([&]() noexcept {
    tracing::start(folder.file);
    const tracing::Range range("fails");
    std::vector<int>().at(1);  // nobody catches it
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(folder.event("fails").is_null());
}

// A child has no part in its parent's trace.
TEST(Trace, IsOfTheProcessThatStartedIt) {
  const TraceFolder folder;
  tracing::start(folder.file);
  EXPECT_EQ(in_child([] { EXPECT_FALSE(tracing::stop()); }), 0);
  EXPECT_EQ(folder.entries(), 0);
  EXPECT_TRUE(tracing::stop());
  EXPECT_EQ(folder.entries(), 1);
}

}  // namespace
}  // namespace catena
