// Rank processes are not mistaken for later processes with their numbers.
#include "job/rank_state.h"

#include <gtest/gtest.h>

#include <csignal>

#include "stopped_child.h"

namespace catena::launch {
namespace {

StartReport report_of(int pid) {
  StartReport report;
  report.pid = pid;
  report.started = comm::process_life(pid).start;
  return report;
}

TEST(RankStateTest, OfARankProcess) {
  testing::StoppedChild child;
  ASSERT_TRUE(child.stopped());
  const StartReport rank = report_of(child.pid());
  EXPECT_EQ(state_of(rank), 'T');
  EXPECT_FALSE(has_ended(state_of(rank)));
  signal_rank(rank, SIGKILL);
  while (!has_ended(state_of(rank))) usleep(1000);  // the test's limit of time is the limit
  child.end();
  EXPECT_EQ(state_of(rank), '\0');
}

TEST(RankStateTest, OfAnotherProcessWithItsNumber) {
  testing::StoppedChild child;
  ASSERT_TRUE(child.stopped());
  StartReport rank = report_of(child.pid());
  rank.started -= 1;
  EXPECT_EQ(state_of(rank), '\0');
  signal_rank(rank, SIGKILL);
  EXPECT_EQ(comm::process_state(child.pid()), 'T') << "it was signalled";
}

}  // namespace
}  // namespace catena::launch
