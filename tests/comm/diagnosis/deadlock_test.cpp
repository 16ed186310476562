// Which ranks are stuck, by what they wait for, and by their records on the board.
#include "comm/diagnosis/deadlock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "error_text.h"

namespace catena::comm {
namespace {

using Ranks = std::vector<int>;

TEST(StuckRanks, AreCirclesAndThoseWhoWaitForThem) {
  EXPECT_EQ(stuck_ranks({}), Ranks());
  EXPECT_EQ(stuck_ranks({{1}, {2}, {}}), Ranks()) << "a chain ends";
  EXPECT_EQ(stuck_ranks({{1}, {0}, {}}), (Ranks{0, 1}));
  EXPECT_EQ(stuck_ranks({{1}, {2}, {0}, {0}, {}}), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(stuck_ranks({{0}}), (Ranks{0}));
  EXPECT_EQ(stuck_ranks({{1, 2}, {3}, {0}, {}}), (Ranks{0, 2})) << "it needs both";
}

// Ranks on one board that begin and end calls.
class DeadlockOnBoard : public ::testing::Test {
 protected:
  DeadlockOnBoard() {
    for (int r = 0; r < kRanks; ++r) place.board->slot(r).set_identity(r, getpid(), "here");
  }
  CallRecord record(int rank, CommOp op, int peer, CallKind kind = CallKind::kArrays) {
    const uint64_t id = op == CommOp::kSend   ? pair_id(kId, rank, peer)
                        : op == CommOp::kRecv ? pair_id(kId, peer, rank)
                                              : kId;
    const CallSignature call{
        .op = op, .dtype = Dtype::kFloat32, .kind = kind, .root = peer, .count = 4};
    return histories.try_emplace({rank, id}, id).first->second.next(call);
  }
  CallRecord begin(int rank, CommOp op, int peer = -1, CallKind kind = CallKind::kArrays,
                   const char* purpose = "") {
    const CallRecord made = record(rank, op, peer, kind);
    place.board->slot(rank).begin_call(made, purpose);
    return made;
  }
  std::string found() { return deadlock_on_board(place, kRanks, kId, &culprit); }

  static constexpr int kRanks = 3;
  static constexpr uint64_t kId = 7;
  BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(kRanks)), {0, 1, 2}};
  std::map<std::pair<int, uint64_t>, CallHistory> histories;
  int culprit = 0;
};

TEST_F(DeadlockOnBoard, IsACircleOfMessages) {
  begin(0, CommOp::kRecv, 1);
  EXPECT_EQ(found(), "");
  begin(1, CommOp::kRecv, 0);
  expect_contains(found(), {"deadlock: rank 0 waited in recv #1 float32[4] from rank 1; rank 1 "
                            "waited in recv #1 float32[4] from rank 0"});
  EXPECT_EQ(culprit, -1);
}

// Such calls cannot be put into a group, so that nothing advises it.
TEST_F(DeadlockOnBoard, SaysWhatCallsServe) {
  begin(0, CommOp::kRecv, 1, CallKind::kArrays, "the header of F::recv");
  begin(1, CommOp::kRecv, 0);
  const std::string text = found();
  expect_contains(text, {"rank 0 waited in recv #1 float32[4] from rank 1, in the header of F::recv"
                         "; rank 1 waited in recv #1 float32[4] from rank 0. None of"});
  EXPECT_EQ(text.find("group"), std::string::npos) << text;
}

TEST_F(DeadlockOnBoard, SaysWhatGroupsServe) {
  begin(0, CommOp::kRecv, 1, CallKind::kGrouped, "pipeline step");
  begin(0, CommOp::kRecv, 2, CallKind::kGroupEnd, "pipeline step");
  begin(1, CommOp::kRecv, 0);
  expect_contains(found(), {"rank 0 waited in recv #1 float32[4] from rank 1, in pipeline step"});
}

// The records of what was called first are gone.
TEST_F(DeadlockOnBoard, IsFoundAfterManyCalls) {
  for (int call = 0; call < StatusBoard::kRingSize + 100; ++call)
    for (int r = 0; r < kRanks; ++r) place.board->slot(r).end_call(begin(r, CommOp::kAllReduce));
  begin(0, CommOp::kRecv, 1);
  EXPECT_EQ(found(), "");
  begin(1, CommOp::kRecv, 0);
  expect_contains(found(), {"deadlock: rank 0 waited in recv #1"});
}

TEST_F(DeadlockOnBoard, EndsWithACall) {
  begin(0, CommOp::kRecv, 1);
  const CallRecord call = begin(1, CommOp::kRecv, 0);
  place.board->slot(1).end_call(call);
  EXPECT_EQ(found(), "") << "rank 1 computes, and may send";
}

TEST_F(DeadlockOnBoard, IsNoMessageThatBothHaveBegun) {
  begin(0, CommOp::kSend, 1);
  begin(1, CommOp::kRecv, 0);
  begin(2, CommOp::kRecv, 0);
  EXPECT_EQ(found(), "");
}

TEST_F(DeadlockOnBoard, IsNoGroupThatIsBeingMade) {
  begin(0, CommOp::kRecv, 1, CallKind::kGrouped);
  begin(1, CommOp::kRecv, 0, CallKind::kGrouped);
  EXPECT_EQ(found(), "") << "the sends may follow";
  begin(0, CommOp::kRecv, 2, CallKind::kGroupEnd);
  EXPECT_EQ(found(), "");
  begin(1, CommOp::kRecv, 2, CallKind::kGroupEnd);
  expect_contains(found(), {"rank 0 waited in recv #1 float32[4] from rank 1",
                            "rank 1 waited in recv #1 float32[4] from rank 0"});
}

TEST_F(DeadlockOnBoard, IsNoExchangeInGroups) {
  for (const int r : {0, 1}) {
    begin(r, CommOp::kRecv, 1 - r, CallKind::kGrouped);
    begin(r, CommOp::kSend, 1 - r, CallKind::kGroupEnd);
  }
  EXPECT_EQ(found(), "");
}

TEST_F(DeadlockOnBoard, HoldsCollectives) {
  begin(0, CommOp::kAllReduce);
  begin(1, CommOp::kSend, 0);
  expect_contains(found(), {"rank 0 waited in all_reduce #1", "rank 1 waited in send #1"});
  EXPECT_EQ(culprit, -1);
  begin(2, CommOp::kAllReduce);
  expect_contains(found(), {"ranks 0, 2 waited in all_reduce #1"});
  EXPECT_EQ(culprit, 1) << "the odd one";
}

TEST_F(DeadlockOnBoard, IsNotKnownOfOtherHosts) {
  begin(0, CommOp::kRecv, 1);
  begin(1, CommOp::kRecv, 0);
  place.slots = {0, -1, 2};
  EXPECT_EQ(found(), "");
}

// Not a circle that another order of the calls would open.
TEST_F(DeadlockOnBoard, SaysWhichRankHasLeft) {
  begin(0, CommOp::kRecv, 1);
  begin(1, CommOp::kBarrier, -1, CallKind::kClose);
  const std::string text = found();
  expect_contains(text, {"rank 1 has left (called close #1), while rank 0 waits in recv #1 "
                         "float32[4] from rank 1. All ranks must"});
  for (const char* word : {"deadlock", "group", "other order"})
    EXPECT_EQ(text.find(word), std::string::npos) << text;
  EXPECT_EQ(culprit, 1);
  begin(2, CommOp::kRecv, 0, CallKind::kArrays, "F::recv");
  expect_contains(found(), {"while rank 0 waits in recv #1 float32[4] from rank 1, rank 2 waits in "
                            "recv #1 float32[4] from rank 0, in F::recv. All"});
  EXPECT_EQ(culprit, 1);
}

TEST_F(DeadlockOnBoard, NobodyHasLeftWhereAllClose) {
  const CallRecord close = record(0, CommOp::kBarrier, -1, CallKind::kClose);
  EXPECT_EQ(describe_deadlock({close, close}, {}).find("has left"), std::string::npos);
}

TEST_F(DeadlockOnBoard, IsNotTheFaultOfARankThatIsDone) {
  begin(2, CommOp::kBarrier, -1, CallKind::kClose);
  begin(0, CommOp::kRecv, 1);
  begin(1, CommOp::kRecv, 0);
  const std::string text = found();
  expect_contains(text, {"deadlock: rank 0 waited in recv #1"});
  EXPECT_EQ(text.find("close"), std::string::npos) << text;
  EXPECT_EQ(culprit, -1);
}

TEST_F(DeadlockOnBoard, OfAPartSaysWhichRanksOfTheJobItIs) {
  place.ranks = {4, 6, 8};
  begin(0, CommOp::kRecv, 1);
  begin(1, CommOp::kBarrier, -1, CallKind::kClose);
  expect_contains(found(), {"rank 1 has left",
                            " (ranks of a part of the job: 0, 1, 2 are ranks 4, 6, 8 of the job)"});
  EXPECT_EQ(culprit, 6);
}

TEST(DescribePart, NamesTheRanksOfTheJob) {
  EXPECT_EQ(describe_part(Ranks{0, 1, 2}), "") << "the same numbers";
  EXPECT_EQ(describe_part(Ranks{-1, -1}), "") << "not known";
  EXPECT_EQ(describe_part(Ranks{3}), " (ranks of a part of the job: 0 is rank 3 of the job)");
  EXPECT_EQ(describe_part(Ranks{2, -1, 1}),
            " (ranks of a part of the job: 0, 2 are ranks 2, 1 of the job)");
  EXPECT_EQ(describe_part(Ranks{2, 6, 10, 14, 18, 22, 26, 30, 34}),
            " (ranks of a part of the job: rank r is rank 2 + 4 r of the job)");
  EXPECT_EQ(describe_part(Ranks{2, 6, 10, 14, 18, 22, 26, 30}),
            " (ranks of a part of the job: 0, 1, 2, 3, 4, 5, 6, 7 are ranks 2, 6, 10, 14, 18, 22, "
            "26, 30 of the job)");
  EXPECT_EQ(
      describe_part(Ranks{0, 1, 2, 3, 4, 5, 6, 7, 9}),
      " (ranks of a part of the job: 0, 1, 2, 3, 4, 5, 6, 7, 8 are ranks 0, 1, 2, 3, 4, 5, 6, "
      "7, 9 of the job)");
}

}  // namespace
}  // namespace catena::comm
