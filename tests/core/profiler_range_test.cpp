#include "catena/core/profiler_range.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <thread>

#include "catena/core/graph.h"
#include "profiler_recorder.h"

namespace catena {
namespace {

using testing::RecordedRanges;

TEST(ProfilerRange, IsOffUnlessHooksAreSet) {
  { const RecordedRanges recorded; }
  { const ProfilerRange range("after"); }
  EXPECT_EQ(RecordedRanges::text_of_thread(), "");
}

TEST(ProfilerRange, Nests) {
  const RecordedRanges recorded;
  {
    const ProfilerRange outer("outer");
    { const cuda::Range inner("inner"); }
    const ProfilerRange last("last");
  }
  EXPECT_EQ(recorded.text(), "outer(inner()last())");
}

TEST(ProfilerRange, EndsWithAnException) {
  const RecordedRanges recorded;
  try {
    const ProfilerRange outer("outer");
    const ProfilerRange inner("inner");
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(recorded.text(), "outer(inner())");
}

TEST(ProfilerRange, IsOfItsThread) {
  const RecordedRanges recorded;
  const ProfilerRange outer("outer");
  std::thread([] {
    const ProfilerRange range("other");
    EXPECT_EQ(RecordedRanges::text_of_thread(), "other(");
  }).join();
  EXPECT_EQ(recorded.text(), "outer(");
}

// One that begins while nobody listens has no end either, and one that began has one.
TEST(ProfilerRange, EndsAsItBegan) {
  std::optional<ProfilerRange> unheard(std::in_place, "unheard"), heard, late;
  const RecordedRanges recorded;
  heard.emplace("heard");
  unheard.reset();
  EXPECT_EQ(recorded.text(), "heard(");
  set_profiler_hooks(nullptr);
  late.emplace("late");
  late.reset();
  heard.reset();
  EXPECT_EQ(recorded.text(), "heard()");
}

}  // namespace
}  // namespace catena
