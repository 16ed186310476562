#include "core/memory_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace catena {
namespace {

using Held = std::map<uint32_t, int64_t>;

// What is held from each time on, by caller; those of zero bytes are left out.
std::map<int64_t, Held> states_of(const MemoryTimeline& timeline) {
  std::map<int64_t, Held> states;
  Held held;
  for (const MemoryTimeline::Change& change : timeline.changes()) {
    if ((held[change.caller] += change.bytes) == 0) held.erase(change.caller);
    states[change.ns] = held;
  }
  return states;
}

int64_t total(const Held& held) {
  int64_t sum = 0;
  for (const auto& [caller, bytes] : held) sum += bytes;
  return sum;
}

int64_t peak(const MemoryTimeline& timeline) {
  int64_t held = 0, most = 0, ns = 0;
  for (const MemoryTimeline::Change& change : timeline.changes()) {
    if (change.ns != ns) most = std::max(most, held);
    ns = change.ns;
    held += change.bytes;
  }
  return std::max(most, held);
}

// Blocks of random sizes that random callers allocate and release, and what they hold at the peak.
struct RandomWalk {
  MemoryTimeline timeline;
  Held held, at_peak;
  int64_t most = 0, peak_ns = 0, last_ns = 0;

  void run(int changes, uint32_t callers) {
    std::mt19937 random(7);
    for (int i = 0; i < changes; ++i) {
      const uint32_t caller = random() % callers;
      int64_t& bytes = held[caller];
      const int64_t change = bytes > 0 && random() % 2 ? -bytes : int64_t(1 + random() % 1000);
      bytes += change;
      last_ns += 1 + int64_t(random() % 50) * int64_t(random() % 50);
      timeline.add(last_ns, caller, change);
      if (bytes == 0) held.erase(caller);
      if (total(held) <= most) continue;
      most = total(held);
      at_peak = held;
      peak_ns = last_ns;
    }
  }
};

TEST(MemoryTimeline, KeepsAllWhileThereIsRoom) {
  RandomWalk walk;
  walk.run(5000, 20);
  EXPECT_EQ(walk.timeline.changes().size(), 5000u);
  EXPECT_EQ(walk.timeline.bucket_width(), 0);
}

TEST(MemoryTimeline, EqualTimesBecomeMoments) {
  MemoryTimeline timeline;
  timeline.add(5, 0, 100);
  timeline.add(5, 0, -100);
  timeline.add(3, 1, 10);
  EXPECT_EQ(peak(timeline), 100);
  EXPECT_EQ(states_of(timeline).rbegin()->first, 7);
}

TEST(MemoryTimeline, ThinningKeepsThePeakAndWhoHeldIt) {
  RandomWalk walk;
  walk.run(600'000, 20);
  EXPECT_LE(walk.timeline.changes().size(), MemoryTimeline::kMostChanges);
  EXPECT_GT(walk.timeline.bucket_width(), 0);
  const auto states = states_of(walk.timeline);
  EXPECT_EQ(peak(walk.timeline), walk.most);
  ASSERT_TRUE(states.contains(walk.peak_ns));
  EXPECT_EQ(states.at(walk.peak_ns), walk.at_peak);
  EXPECT_EQ(states.rbegin()->second, walk.held) << "what is held in the end";
}

TEST(MemoryTimeline, EachBucketKeepsItsHighestAndItsLastMoment) {
  RandomWalk walk;
  walk.run(20'000, 10);
  const auto exact = states_of(walk.timeline);
  constexpr int64_t kWidth = 50'000;
  std::map<int64_t, int64_t> highest;  // by bucket
  std::map<int64_t, Held> last;
  for (const auto& [ns, held] : exact) {
    highest[ns / kWidth] = std::max(highest[ns / kWidth], total(held));
    last[ns / kWidth] = held;
  }
  walk.timeline.merge(kWidth);
  EXPECT_LT(walk.timeline.changes().size(), 20'000u);
  std::map<int64_t, int64_t> kept;
  std::map<int64_t, Held> kept_last;
  for (const auto& [ns, held] : states_of(walk.timeline)) {
    EXPECT_TRUE(exact.contains(ns) && exact.at(ns) == held) << "no such moment: " << ns;
    kept[ns / kWidth] = std::max(kept[ns / kWidth], total(held));
    kept_last[ns / kWidth] = held;
  }
  EXPECT_GT(highest.size(), 100u);
  EXPECT_EQ(kept, highest);
  EXPECT_EQ(kept_last, last);
}

// Two moments with as many callers do not fit into the budget: it grows instead of thinning out in
// vain at each change.
TEST(MemoryTimeline, ManyCallersGetMoreRoom) {
  MemoryTimeline timeline;
  constexpr uint32_t kCallers = 300'000;
  for (uint32_t i = 0; i < kCallers; ++i) timeline.add(i, i, 8);
  for (uint32_t i = 0; i < kCallers; ++i) timeline.add(kCallers + i, i, -8);
  EXPECT_EQ(peak(timeline), int64_t{8} * kCallers);
  EXPECT_LE(timeline.changes().size(), 4 * size_t{kCallers});
}

}  // namespace
}  // namespace catena
