#include "cli/rank_states.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "status/status_board.h"

namespace catena::launch {
namespace {

using comm::CallHistory;
using comm::CallRecord;
using comm::Phase;
using comm::SlotSnapshot;
using comm::StatusBoard;
using comm::StatusSlot;

CallRecord next_call(CallHistory& history) {
  return history.next(
      {.op = comm::CommOp::kAllReduce, .dtype = catena::Dtype::kFloat32, .count = 8});
}

std::uint64_t later(double seconds) {
  return comm::monotonic_ns() + static_cast<std::uint64_t>(seconds * 1e9);
}

std::string state_later(const StatusBoard& board, int slot, double seconds) {
  return describe_state(board.read(slot), later(seconds));
}

TEST(RankStates, FromTheStartToTheEnd) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  slot.set_identity(0, getpid(), "node1");
  EXPECT_EQ(state_later(board, 0, 0), "starting");
  slot.set_phase(Phase::launched);
  EXPECT_EQ(state_later(board, 0, 2), "started 2.0 s ago, has no communicator yet");
  slot.set_phase(Phase::joining);
  EXPECT_EQ(state_later(board, 0, 3), "joining the others, since 3.0 s");
  slot.set_phase(Phase::running);
  EXPECT_EQ(state_later(board, 0, 1), "computing for 1.0 s, no call yet");
  slot.set_phase(Phase::finished);
  EXPECT_EQ(state_later(board, 0, 1), "ended");
}

TEST(RankStates, InACallAndBetweenCalls) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  slot.set_identity(0, getpid(), "node1");
  slot.set_phase(Phase::running);
  CallHistory history(7);
  const CallRecord call = next_call(history);
  slot.begin_call(call, "F::send");
  EXPECT_EQ(state_later(board, 0, 150), "in all_reduce #1 sum float32[8] for F::send, since 150 s");
  slot.end_call(call);
  slot.set_operation("epoch 2");
  EXPECT_EQ(state_later(board, 0, 4),
            "computing for 4.0 s (epoch 2), after all_reduce #1 sum float32[8]");
}

// Not since its last call began, which may have taken long.
TEST(RankStates, ComputesSinceItsLastCallEnded) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  CallHistory history(7);
  const CallRecord call = next_call(history);
  slot.begin_call(call);
  usleep(2000);
  const std::uint64_t before_end = comm::monotonic_ns();
  EXPECT_EQ(board.read(0).idle_since_ns, 0u);
  slot.end_call(call);
  EXPECT_GE(board.read(0).idle_since_ns, before_end);
}

TEST(RankStates, FailuresAreQuotedByTheirFirstLine) {
  const StatusBoard board = StatusBoard::create_private(2);
  board.slot(0).fail("no such file\nsecond line");
  EXPECT_EQ(state_later(board, 0, 0), "failed: no such file");
  board.slot(1).fail_because_of_peer(0, "rank 0 failed");
  EXPECT_EQ(state_later(board, 1, 0), "failed: rank 0 failed");
}

TEST(RankStates, WhoIsBehind) {
  EXPECT_EQ(describe_stragglers({}), "");
  EXPECT_EQ(describe_stragglers({{0, 5, true, 3}, {1, 5, false, 0}}), "");
  EXPECT_EQ(describe_stragglers({{0, 41, true, 3.2}, {1, 40, false, 0}, {2, 41, true, 1}}),
            "behind: rank 1 at call #40, while ranks 0, 2 are at call #41, since 3.2 s\n");
  EXPECT_EQ(describe_stragglers({{0, 4, false, 0}, {1, 2, true, 9}, {2, 3, true, 9}}),
            "behind: rank 1 at call #2; rank 2 at call #3, while rank 0 is at call #4\n");
}

TEST(RankStates, ProgressIsThatOfTheCommonCommunicator) {
  const StatusBoard board = StatusBoard::create_private(3);
  CallHistory world[3] = {CallHistory(7), CallHistory(7), CallHistory(7)};
  for (int rank = 0; rank < 3; ++rank) {
    board.slot(rank).set_identity(rank, getpid(), "node1");
    board.slot(rank).set_phase(Phase::running);
    const CallRecord call = next_call(world[rank]);
    board.slot(rank).begin_call(call);
    board.slot(rank).end_call(call);
  }
  board.slot(2).begin_call(next_call(world[2]));
  CallHistory pair(9);  // of another communicator, with higher numbers
  for (int i = 0; i < 3; ++i) board.slot(0).begin_call(next_call(pair));
  const std::vector<RankProgress> ranks = progress_of(board, later(2));
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0].calls, 1u);
  EXPECT_FALSE(ranks[0].waits);
  EXPECT_EQ(ranks[2].calls, 2u);
  EXPECT_TRUE(ranks[2].waits);
  EXPECT_NEAR(ranks[2].seconds, 2, 0.5);
}

}  // namespace
}  // namespace catena::launch
