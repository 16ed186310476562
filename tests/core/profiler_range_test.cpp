#include "catena/core/profiler_range.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "catena/core/graph.h"
#include "profiler_recorder.h"

namespace catena {
namespace {

using testing::RecordedRanges;

TEST(ProfilerRange, IsOffUnlessHooksAreSet) {
  { const ProfilerRange range("before"); }
  {
    const RecordedRanges recorded;
    EXPECT_EQ(recorded.text(), "");
  }
  { const ProfilerRange range("after"); }
  const RecordedRanges recorded;
  EXPECT_EQ(recorded.text(), "");
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
  std::string text;
  {
    const ProfilerRange unheard("unheard");
    const RecordedRanges recorded;
    {
      const ProfilerRange heard("heard");
      set_profiler_hooks(nullptr);
      const ProfilerRange late("late");
    }
    text = recorded.text();
  }
  EXPECT_EQ(text, "heard()");
}

}  // namespace
}  // namespace catena
