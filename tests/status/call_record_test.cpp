// Calls as records in shared memory: their hashes, texts and differences.
#include "status/call_record.h"

#include <gtest/gtest.h>

#include <vector>

#include "catena/core/dtype.h"
#include "status/status_board.h"

namespace catena::comm {
namespace {

CallRecord all_reduce(CallHistory& history, std::int64_t count) {
  return history.next({.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = count});
}

TEST(CallRecords, SignaturesComeBackFromSharedMemory) {
  const StatusBoard board = StatusBoard::create_private(1);
  CallHistory history(3);
  const std::vector<CallSignature> made{
      {.op = CommOp::kAllReduce,
       .dtype = Dtype::kBool,
       .reduction = Reduction::kProduct,
       .count = 7},
      {.op = CommOp::kSend, .dtype = Dtype::kBFloat16, .root = 4095, .count = int64_t{1} << 40},
      {.op = CommOp::kAllGather, .dtype = Dtype::kInt64, .kind = CallKind::kObject, .count = 1},
      {.op = CommOp::kReduce,
       .dtype = Dtype::kFloat64,
       .reduction = Reduction::kWeighted,
       .kind = CallKind::kGrouped,
       .root = 0,
       .count = 0},
      {.op = CommOp::kAllReduce, .count = 3, .tag = {TagKind::kBucket, 7, 1 << 20}},
      {.op = CommOp::kAllReduce, .count = 1, .tag = {TagKind::kLayout, 7, 0}},
      {.op = CommOp::kBarrier, .kind = CallKind::kClose}};
  for (const CallSignature& call : made) {
    const CallRecord record = history.next(call);
    board.slot(0).begin_call(record);
    board.slot(0).end_call(record);
  }
  const std::vector<CallRecord> read = board.calls(0);
  ASSERT_EQ(read.size(), made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(read[i].call, made[i]) << format_call(read[i]);
    EXPECT_EQ(read[i].sequence, i + 1);
    EXPECT_EQ(read[i].communicator, 3u);
  }
  EXPECT_EQ(read.back().hash, history.hash());
  EXPECT_EQ(board.read(0).last_call, "close #7");
}

TEST(CallRecords, EveryFieldCounts) {
  CallRecord call;
  call.sequence = 4;
  call.call = {.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 100};
  call.communicator = 7;
  const std::uint64_t hash = fold_call(1, call);
  EXPECT_EQ(hash, fold_call(1, call));
  EXPECT_NE(hash, fold_call(2, call));
  const auto changed = [&](auto change) {
    CallRecord other = call;
    change(other);
    return fold_call(1, other) != hash;
  };
  EXPECT_TRUE(changed([](CallRecord& c) { c.sequence = 5; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.op = CommOp::kReduceScatter; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.dtype = Dtype::kBFloat16; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.reduction = Reduction::kMax; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.root = 0; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.count = 101; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.kind = CallKind::kObject; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.tag.owner = 1; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.call.tag.part = 1; }));
  EXPECT_TRUE(changed([](CallRecord& c) { c.communicator = 8; }));
  EXPECT_FALSE(changed([](CallRecord& c) { c.hash = 99; }));
  EXPECT_FALSE(changed([](CallRecord& c) { c.call.kind = CallKind::kGrouped; }))
      << "a rank may group what another one does not";
  EXPECT_FALSE(changed([](CallRecord& c) {
    c.call.tag = {TagKind::kUpdates, 0, 9};
  })) << "said in texts alone";
}

TEST(CallRecords, BothEndsOfAMessageHashAlike) {
  CallHistory sender(5), receiver(5), other(5);
  const CallRecord sent =
      sender.next({.op = CommOp::kSend, .dtype = Dtype::kFloat32, .root = 1, .count = 4});
  const CallRecord received =
      receiver.next({.op = CommOp::kRecv, .dtype = Dtype::kFloat32, .root = 0, .count = 4});
  EXPECT_EQ(sent.hash, received.hash);
  EXPECT_NE(
      sent.hash,
      other.next({.op = CommOp::kRecv, .dtype = Dtype::kFloat32, .root = 0, .count = 5}).hash);
}

TEST(CallRecords, Formatted) {
  constexpr Dtype kFloat = Dtype::kFloat32;
  const std::pair<CallSignature, const char*> cases[] = {
      {{.op = CommOp::kAllReduce, .dtype = kFloat, .reduction = Reduction::kMin, .count = 10},
       "all_reduce #7 min float32[10]"},
      {{.op = CommOp::kBroadcast, .dtype = Dtype::kInt64, .root = 3, .count = 7},
       "broadcast #7 int64[7] root 3"},
      {{.op = CommOp::kBarrier}, "barrier #7"},
      {{.op = CommOp::kSend, .dtype = kFloat, .root = 1, .count = 4},
       "send #7 float32[4] to rank 1"},
      {{.op = CommOp::kRecv, .dtype = kFloat, .root = 0, .count = 4},
       "recv #7 float32[4] from rank 0"},
      {{.op = CommOp::kBroadcast, .kind = CallKind::kObject, .root = 2, .count = 1},
       "broadcast_object #7 root 2"},
      {{.op = CommOp::kBarrier, .kind = CallKind::kSplit}, "split #7"},
      {{.op = CommOp::kBarrier, .kind = CallKind::kClose}, "close #7"},
      {{.op = CommOp::kReduce,
        .dtype = Dtype::kBool,
        .kind = CallKind::kGrouped,
        .root = 0,
        .count = 3},
       "reduce #7 sum bool[3] root 0"},
      {{.op = CommOp::kAllReduce,
        .dtype = kFloat,
        .reduction = Reduction::kMean,
        .count = 10,
        .tag = {TagKind::kBucket, 2, 0}},
       "all_reduce #7 mean float32[10] (bucket 0 of optimizer 2)"},
      {{.op = CommOp::kAllGather, .dtype = kFloat, .count = 10, .tag = {TagKind::kFollowing, 2, 1}},
       "all_gather #7 float32[10] (bucket 1 of optimizer 2, in a batch)"}};
  for (const auto& [call, text] : cases) EXPECT_EQ(format_call(call, 7), text);
  CallHistory history(1);
  EXPECT_EQ(format_call(history.next({.op = CommOp::kBarrier})), "barrier #1");
  CallRecord odd;
  odd.call.op = static_cast<CommOp>(200);
  odd.call.dtype = static_cast<Dtype>(200);
  EXPECT_EQ(format_call(odd), "unknown #0 unknown[0]");
}

using Ring = std::vector<CallRecord>;

Ring make_ring(int calls, int different_at = 0, std::uint64_t communicator = 1) {
  Ring ring;
  CallHistory history(communicator);
  for (int i = 1; i <= calls; ++i)
    ring.push_back(all_reduce(history, i == different_at ? 999 : 10));
  return ring;
}

TEST(CallRecords, NoDifferenceWhenOneIsOnlyBehind) {
  EXPECT_FALSE(first_different_call({make_ring(10), make_ring(7), make_ring(0)}, 1));
}

TEST(CallRecords, FirstDifferenceIsFound) {
  const auto found = first_different_call({make_ring(20), make_ring(20, 8), make_ring(20)}, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 8u);
  EXPECT_TRUE(found->exact);
  ASSERT_EQ(found->calls.size(), 3u);
  EXPECT_EQ(found->calls[0]->call.count, 10);
  EXPECT_EQ(found->calls[1]->call.count, 999);
}

TEST(CallRecords, OtherCommunicatorsDoNotMix) {
  Ring mixed = make_ring(5);
  const Ring other = make_ring(5, 2, 77);
  mixed.insert(mixed.begin() + 2, other.begin(), other.end());
  EXPECT_FALSE(first_different_call({mixed, make_ring(5)}, 1));
  EXPECT_FALSE(first_different_call({mixed, make_ring(5)}, 77));
}

TEST(CallRecords, DifferenceOlderThanTheRings) {
  Ring first = make_ring(30);
  Ring second = make_ring(30, 3);
  first.erase(first.begin(), first.begin() + 10);
  second.erase(second.begin(), second.begin() + 10);
  const auto found = first_different_call({first, second}, 1);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->exact);
  EXPECT_EQ(found->sequence, 11u);
}

}  // namespace
}  // namespace catena::comm
