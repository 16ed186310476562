// Calls that differ between ranks, as their records on the board tell, and those yet to be made.
#include "comm/diagnosis/mismatch.h"

#include <gtest/gtest.h>

#include "catena/comm/transport.h"
#include "comm/diagnosis/peer_status.h"

namespace catena::comm {
namespace {

constexpr uint64_t kId = 7;

// Three ranks, the last one on another host.
struct Ranks {
  void call(int rank, CommOp op = CommOp::kAllReduce) { record(rank, own[size_t(rank)], op); }
  void record(int rank, CallHistory& history, CommOp op) {
    place.board->slot(rank).begin_call(
        history.next({.op = op, .dtype = Dtype::kFloat32, .count = 8}));
  }
  // What rank 0 finds in the last `depth` calls.
  std::string difference(int depth = 32) {
    return difference_on_board(place, 0, 3, kId, depth, &came);
  }

  BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(2)), {0, 1, -1}};
  CallHistory own[2] = {CallHistory(kId), CallHistory(kId)};
  bool came = false;
};

TEST(Difference, IsFoundOnceTheOtherRankHasCome) {
  Ranks ranks;
  EXPECT_EQ(ranks.difference(), "");
  EXPECT_TRUE(ranks.came) << "nobody has made a call";
  ranks.call(0);
  EXPECT_EQ(ranks.difference(), "");
  EXPECT_FALSE(ranks.came);
  ranks.call(1, CommOp::kBroadcast);
  EXPECT_NE(ranks.difference().find("differ in call #1: rank 0 called all_reduce #1"),
            std::string::npos);
  EXPECT_TRUE(ranks.came);
}

TEST(Difference, SaysThatItMayBeginEarlier) {
  const std::vector<std::string> calls{"called a", "called b"};
  EXPECT_NE(describe_mismatch(calls, 4, false).find("too long ago"), std::string::npos);
  EXPECT_EQ(describe_mismatch(calls, 4, true).find("too long ago"), std::string::npos);
}

TEST(Difference, RanksAheadHaveCome) {
  Ranks ranks;
  for (int i = 0; i < 3; ++i) ranks.call(1);
  ranks.call(0);
  EXPECT_EQ(ranks.difference(), "");
  EXPECT_TRUE(ranks.came);
}

TEST(Difference, MessagesWaitForTheirSenders) {
  Ranks ranks;
  CallHistory received(pair_id(kId, 1, 0)), sent(pair_id(kId, 1, 0)), unread(pair_id(kId, 0, 1));
  ranks.record(0, unread, CommOp::kSend);
  EXPECT_EQ(ranks.difference(), "");
  EXPECT_TRUE(ranks.came) << "who sends has no result";
  ranks.record(0, received, CommOp::kRecv);
  EXPECT_EQ(ranks.difference(), "");
  EXPECT_FALSE(ranks.came);
  ranks.record(1, sent, CommOp::kSend);
  EXPECT_EQ(ranks.difference(), "");
  EXPECT_TRUE(ranks.came);
}

// Its calls on the communicator are older than all that is compared.
TEST(Difference, RanksWithManyCallsElsewhereHaveCome) {
  Ranks ranks;
  CallHistory elsewhere(9);
  ranks.call(0);
  for (int i = 0; i < 3; ++i) ranks.record(1, elsewhere, CommOp::kAllReduce);
  EXPECT_EQ(ranks.difference(4), "");
  EXPECT_FALSE(ranks.came) << "all its calls are known";
  EXPECT_EQ(ranks.difference(3), "");
  EXPECT_TRUE(ranks.came);
}

}  // namespace
}  // namespace catena::comm
