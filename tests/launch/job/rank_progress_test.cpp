#include "job/rank_progress.h"

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

// A rank of another host, seen before the others went on, has gone on with them since.
TEST(RankStates, NobodyIsBehindBecauseItWasSeenLongAgo) {
  const RankProgress here = {0, 97, true, 2.1};
  EXPECT_EQ(describe_stragglers({here, {2, 91, true, 4.0, 2.9}, {3, 90, false, 0, 2.9}}), "");
  EXPECT_EQ(describe_stragglers({here, {2, 97, true, 1.9, 1.0}, {3, 96, false, 0, 1.0}}),
            "behind: rank 3 at call #96, while ranks 0, 2 are at call #97, since 2.1 s\n");
  EXPECT_EQ(describe_stragglers({here, {3, 96, false, 0, 2.0}}), "") << "its report was on its way";
  // None is of this host: the first was seen in its call before the second was seen.
  EXPECT_EQ(describe_stragglers({{2, 97, false, 0, 2.0}, {3, 96, false, 0, 0.5}}),
            "behind: rank 3 at call #96, while rank 2 is at call #97\n");
  EXPECT_EQ(describe_stragglers({{2, 97, false, 0, 0.5}, {3, 96, false, 0, 2.0}}), "");
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
  std::vector<StateReport> states;
  for (int rank = 0; rank < 3; ++rank) states.push_back(state_of_slot(board, rank, later(2)));
  const std::vector<RankProgress> ranks = progress_of(states, &board);
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0].calls, 1u);
  EXPECT_FALSE(ranks[0].waits);
  EXPECT_EQ(ranks[2].calls, 2u);
  EXPECT_TRUE(ranks[2].waits);
  EXPECT_NEAR(ranks[2].seconds, 2, 0.5);
}

StateReport rank_after(int rank, std::uint64_t updates, double seconds) {
  StateReport state;
  state.rank = rank;
  state.updates = updates;
  state.since_update = seconds;
  return state;
}

// Without its board nothing is known of a rank's earlier communicators.
TEST(RankStates, ProgressOfRanksOfOtherHosts) {
  StateReport here, there, elsewhere;
  here.rank = 0;
  there.rank = 1;
  elsewhere.rank = 2;
  here.communicator = there.communicator = 7;
  elsewhere.communicator = 9;
  here.calls = 41;
  there.calls = elsewhere.calls = 40;
  here.waits = true;
  here.waited = 3.2;
  EXPECT_EQ(describe_stragglers(progress_of({here, there, elsewhere}, nullptr)),
            "behind: rank 1 at call #40, while rank 0 is at call #41, since 3.2 s\n");
  EXPECT_EQ(describe_stragglers(progress_of({here, aged(there, 5)}, nullptr)), "");
  const StateReport none = rank_after(3, 0, 0), no_more = rank_after(4, 0, 0);  // without calls
  EXPECT_EQ(progress_of({here, there, none, no_more, rank_after(5, 0, 0)}, nullptr).size(), 2u);
  StateReport fresh = there;
  fresh.calls = 0;
  EXPECT_EQ(progress_of({here, fresh}, nullptr).size(), 1u);
  there.ended = true;
  EXPECT_EQ(describe_stragglers(progress_of({here, there, elsewhere}, nullptr)), "");
}

TEST(RankStates, WhoLacksAnUpdate) {
  EXPECT_EQ(describe_slow_ranks({}), "");
  EXPECT_EQ(describe_slow_ranks({rank_after(0, 41, 4), rank_after(1, 40, 6)}), "")
      << "not for long";
  EXPECT_EQ(describe_slow_ranks({rank_after(0, 41, 90), rank_after(1, 41, 90)}), "");
  EXPECT_EQ(describe_slow_ranks({rank_after(0, 41, 6.2), rank_after(1, 40, 7), rank_after(2, 41, 6),
                                 rank_after(3, 40, 7)}),
            "slow: ranks 1, 3 have made 40 updates, rank 0 made 41 6.2 s ago\n");
  EXPECT_EQ(describe_slow_ranks({rank_after(0, 41, 6.2), aged(rank_after(1, 40, 1), 6)}), "")
      << "seen before";
  StateReport ended = rank_after(1, 40, 7);
  ended.ended = true;
  EXPECT_EQ(describe_slow_ranks({rank_after(0, 41, 6.2), ended}), "");
}

TEST(RankStates, WhoNeedsLongForAStep) {
  std::vector<StateReport> ranks = {rank_after(0, 9, 0), rank_after(1, 9, 0), rank_after(2, 9, 0)};
  ranks[0].own_step = 0.2;
  ranks[1].own_step = 0.25;
  ranks[2].own_step = 0.37;
  EXPECT_EQ(describe_slow_ranks(ranks), "");
  ranks[2].own_step = 0.45;
  EXPECT_EQ(
      describe_slow_ranks(ranks),
      "slow: rank 2 needs for its part of a step 1.8 of the median (450 ms against 250 ms)\n");
  EXPECT_EQ(describe_slow_ranks({ranks[2]}), "");
}

TEST(RankStates, Updates) {
  EXPECT_EQ(describe_updates({}), "");
  EXPECT_EQ(describe_updates({rank_after(0, 0, 0)}), "");
  std::vector<StateReport> ranks = {rank_after(0, 119, 0.3), rank_after(1, 120, 0.2)};
  EXPECT_EQ(describe_updates(ranks), "updates: 120, the last one 0.2 s ago\n");
  ranks[1].step = 0.125;
  EXPECT_EQ(describe_updates(ranks), "updates: 120, 8 a second, the last one 0.2 s ago\n");
}

// Time in calls is no time of the rank's own.
TEST(RankStates, StepsAreTimed) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  slot.set_identity(0, getpid(), "node1");
  CallHistory history(7);
  slot.note_update();
  EXPECT_EQ(state_of_slot(board, 0, later(0)).step, 0);
  for (int i = 0; i < 3; ++i) {
    const CallRecord call = next_call(history);
    usleep(2000);
    slot.begin_call(call);
    usleep(20000);
    slot.end_call(call);
    slot.note_update();
  }
  const StateReport state = state_of_slot(board, 0, later(1));
  EXPECT_EQ(state.updates, 4u);
  EXPECT_NEAR(state.since_update, 1, 0.5);
  EXPECT_GE(state.step, 0.022);
  EXPECT_GE(state.own_step, 0.002);
  EXPECT_LE(state.own_step, state.step - 0.019);
}

}  // namespace
}  // namespace catena::launch
