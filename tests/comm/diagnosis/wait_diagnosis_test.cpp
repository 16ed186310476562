// Which ranks the others wait for, as their records on the board tell, and what waits say of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "comm/diagnosis/wait_diagnosis.h"
#include "error_text.h"
#include "stopped_child.h"

namespace catena::comm {
namespace {

TEST(SlowestRanks, MadeTheFewestCalls) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(4)),
                         {2, 0, -1, 1}};
  EXPECT_EQ(slowest_ranks(last_calls(place, 7)), std::vector<int>());
  CallHistory histories[] = {CallHistory(7), CallHistory(7), CallHistory(7)};
  const auto call = [&](int slot) {
    place.board->slot(slot).begin_call(
        histories[slot].next({.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 8}));
  };
  call(2);
  EXPECT_EQ(slowest_ranks(last_calls(place, 7)), (std::vector<int>{1, 3})) << "they made none";
  call(0);
  EXPECT_EQ(slowest_ranks(last_calls(place, 7)), (std::vector<int>{3}));
  call(1);
  EXPECT_EQ(slowest_ranks(last_calls(place, 7)), std::vector<int>());
  call(2);
  call(2);
  call(0);
  EXPECT_EQ(slowest_ranks(last_calls(place, 7)), (std::vector<int>{3}))
      << "not those that lag behind one";
  EXPECT_EQ(slowest_ranks(last_calls({}, 7)), std::vector<int>()) << "without a board";
}

// Its records of the communicator are gone, and with them what it did.
TEST(SlowestRanks, AreNotThoseWithManyCallsElsewhere) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(2)), {0, 1}};
  CallHistory first(7), second(7), elsewhere(9);
  const auto call = [&](int slot, CallHistory& history) {
    place.board->slot(slot).begin_call(
        history.next({.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 8}));
  };
  call(0, first);
  call(1, second);
  call(1, second);
  EXPECT_EQ(slowest_ranks(last_calls(place, 7)), (std::vector<int>{0}));
  EXPECT_EQ(late_ranks(last_calls(place, 7), 2), (std::vector<int>{0}));
  for (int i = 0; i < StatusBoard::kRingSize; ++i) call(0, elsewhere);
  EXPECT_EQ(slowest_ranks(last_calls(place, 7)), std::vector<int>());
  EXPECT_EQ(late_ranks(last_calls(place, 7), 2), std::vector<int>());
}

// Two ranks of a job of four, on one board; the board's ranks are those of the job.
struct Pair {
  Pair() {
    place.board->slot(0).set_identity(2, 1, "here");
    place.board->slot(1).set_identity(3, 1, "here");
  }
  void call(int slot) {
    place.board->slot(slot).begin_call(histories[size_t(slot)].next(
        {.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 8}));
  }
  // What the first of the two says after 5 s.
  WaitDiagnosis after_5_s(Wait wait) const {
    wait.doing = "for a sum";
    wait.rank = 0;
    return diagnose_timeout(place, 7, 5, wait);
  }
  void expect(const Wait& wait, const char* text, int culprit) const {
    const WaitDiagnosis delay = after_5_s(wait);
    EXPECT_EQ(delay.culprit, culprit) << delay.text;
    expect_contains(delay.text, {"rank 0 waited 5 s (CATENA_TIMEOUT) for a sum: ", text});
  }
  BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(2)), {0, 1}};
  std::array<CallHistory, 2> histories{CallHistory(7), CallHistory(7)};
};

TEST(DiagnoseTimeout, BlamesTheRankThatDidNotCome) {
  Pair pair;
  pair.expect({.peer = 1}, "sum: rank 1 did not come; inspect", 3);
  pair.call(0);
  pair.expect({.sequence = 1}, "sum: rank 1 did not come to call #1; inspect", 3);
  pair.expect({.sequence = 1, .on_gpu = true}, "sum: rank 1 did not come to call #1; inspect", 3);
  pair.expect({}, "sum: rank 1 has made fewer calls than others; inspect", 3);
  pair.expect({}, " (ranks of a part of the job: 0, 1 are ranks 2, 3 of the job)", 3);
}

TEST(DiagnoseTimeout, BlamesNobodyForACallThatAllHaveMade) {
  Pair pair;
  for (const int slot : {0, 1}) pair.call(slot);
  pair.expect({.sequence = 1}, "sum: all ranks have made call #1, but the transfer", -1);
  const Wait on_gpu{.sequence = 1, .on_gpu = true};
  const char* const unfinished =
      "all ranks have made call #1: a GPU has not finished the work that was queued before it";
  pair.expect(on_gpu, unfinished, -1);
  pair.expect({}, "sum: other ranks did not come or do not progress", -1);
  pair.call(0);  // runs ahead of its GPU
  pair.expect(on_gpu, unfinished, -1);
  for (int i = 0; i < 3; ++i) pair.call(1);  // the other one does
  pair.expect(on_gpu, unfinished, -1);
  pair.expect({}, "sum: other ranks did not come or do not progress", -1);
}

// A mark of a GPU's work stands for all calls of a moment.
TEST(DiagnoseTimeout, OfSeveralCallsBlamesForTheFirstOnly) {
  Pair pair;
  for (int i = 0; i < 5; ++i) pair.call(0);
  for (int i = 0; i < 3; ++i) pair.call(1);
  pair.expect({.sequence = 5, .first = 4, .on_gpu = true},
              "rank 1 did not come to call #4; inspect", 3);
  pair.expect({.sequence = 5, .first = 2, .on_gpu = true},
              "rank 1 did not come to call #5, or a GPU has not finished the work that was queued "
              "before it; inspect",
              -1);
}

TEST(DiagnoseTimeout, DoesNotSpeakForRanksWithoutRecords) {
  Pair pair;
  pair.place.slots = {0, -1};  // on another host
  pair.call(0);
  pair.expect({.sequence = 1}, "sum: other ranks did not come to call #1; inspect", -1);
  pair.expect({.sequence = 1, .on_gpu = true},
              "sum: other ranks did not come to call #1, or a GPU has not finished the work", -1);
  pair.expect({}, "sum: other ranks did not come or do not progress", -1);
  expect_contains(diagnose_timeout(nullptr, 4, {.doing = "in a split"}).text,
                  {"waited 4 s (CATENA_TIMEOUT) in a split: other ranks did not come"});
}

TEST(DiagnoseTimeout, NamesTheHostsThatNothingIsKnownOf) {
  Pair pair;
  pair.place.slots = {0, -1, -1, 1};
  pair.place.hosts = {"node1", "node2", "node2", "node1"};
  pair.place.ranks = {4, 5, 6, 7};
  pair.call(0);
  pair.expect({.sequence = 1}, "sum: rank 3 did not come to call #1; inspect", 7);
  pair.call(1);
  pair.expect({.sequence = 1},
              "sum: ranks 1, 2 on node2 did not come to call #1, or the network between the hosts "
              "is down; inspect",
              -1);
  pair.expect({}, "sum: ranks 1, 2 on node2 did not come or do not progress, or the network", -1);
}

TEST(DiagnoseTimeout, BlamesAProcessThatIsStopped) {
  const testing::StoppedChild child;
  ASSERT_TRUE(child.stopped());
  Pair pair;
  pair.place.board->slot(1).set_identity(3, child.pid(), "here");
  for (const int slot : {0, 1}) pair.call(slot);
  const std::string text =
      message("but the transfer hangs; rank 1 (process ", child.pid(), ") is stopped, as by");
  pair.expect({.sequence = 1}, text.c_str(), 3);
}

TEST(DiagnoseTimeout, TellsOfACallOfAnotherCommunicator) {
  Pair pair;
  pair.call(0);
  CallHistory other(8);
  pair.place.board->slot(1).begin_call(other.next({.op = CommOp::kBarrier}));
  pair.expect({.sequence = 1},
              "rank 1 did not come to call #1; rank 1 is in barrier #1 of another communicator",
              -1);
}

TEST(DiagnoseTimeout, BlamesTheOnlyRankThatIsElsewhere) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(3)), {0, 1, 2}};
  CallHistory first(7), second(7), other(8);
  for (CallHistory* const history : {&first, &second})
    place.board->slot(history == &first ? 0 : 2)
        .begin_call(history->next({.op = CommOp::kBarrier}));
  place.board->slot(1).begin_call(other.next({.op = CommOp::kBarrier}));
  const WaitDiagnosis found =
      diagnose_timeout(place, 7, 5, {.doing = "for a sum", .rank = 0, .sequence = 1});
  EXPECT_EQ(found.culprit, 1) << found.text;
}

// A rank that ends because of another one throws, which becomes its own failure as well.
TEST(ProblemOnBoard, BlamesTheRankThatVictimsBlame) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(3)), {0, 1, 2}};
  for (const int r : {0, 1, 2}) place.board->slot(r).set_identity(r, getpid(), "here");
  place.board->slot(2).fail_because_of_peer(1, "rank 1 called something else");
  int culprit = -1;
  EXPECT_EQ(problem_on_board(place, 0, 3, 7, 1, &culprit), "") << "it may go on without that one";
  place.board->slot(2).fail("rank 1 called something else");
  EXPECT_EQ(problem_on_board(place, 0, 3, 7, 1, &culprit), "rank 1 called something else");
  EXPECT_EQ(culprit, 1);
}

TEST(ProblemOnBoard, BlamesTheRankThatFailedFirst) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(3)), {0, 1, 2}};
  for (const int r : {0, 1, 2}) place.board->slot(r).set_identity(r, getpid(), "here");
  int culprit = -1;
  place.board->slot(1).set_phase(Phase::finishing);
  EXPECT_EQ(problem_on_board(place, 0, 3, 7, 0, &culprit), "") << "nobody waits for it";
  EXPECT_EQ(problem_on_board(place, 0, 3, 7, 1, &culprit), "rank 1 has left the program");
  place.board->slot(1).fail("disk full");
  place.board->slot(1).fail_because_of_peer(2, "rank 2 is gone");  // on its way out
  place.board->slot(2).fail("rank 1 is gone");
  EXPECT_EQ(problem_on_board(place, 0, 3, 7, 1, &culprit), "rank 1 failed: disk full");
  EXPECT_EQ(culprit, 1);
}

TEST(ProblemOnBoard, NamesTheOddOneOfRanksWhoseCallsDiffer) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(3)), {0, 1, 2}};
  for (const int r : {0, 1, 2}) {
    place.board->slot(r).set_identity(r, getpid(), "here");
    CallHistory history(7);
    place.board->slot(r).begin_call(
        history.next({.op = r == 1 ? CommOp::kBarrier : CommOp::kAllReduce, .count = 8}));
  }
  int culprit = -1;
  EXPECT_NE(problem_on_board(place, 0, 3, 7, 1, &culprit).find("differ in call #1"),
            std::string::npos);
  EXPECT_EQ(culprit, 1);
}

TEST(ProblemOnBoard, NamesTheOddOneOfRanksThatWaitForEachOther) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(3)), {0, 1, 2}};
  for (const int r : {0, 1, 2}) place.board->slot(r).set_identity(r, getpid(), "here");
  CallHistory all[] = {CallHistory(7), CallHistory(7)}, pair(pair_id(7, 1, 2));
  place.board->slot(0).begin_call(
      all[0].next({.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 8}));
  place.board->slot(2).begin_call(
      all[1].next({.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 8}));
  place.board->slot(1).begin_call(
      pair.next({.op = CommOp::kSend, .dtype = Dtype::kFloat32, .root = 2, .count = 8}));
  int culprit = -1;
  EXPECT_EQ(problem_on_board(place, 0, 3, 7, 1, &culprit), "") << "not looked for yet";
  EXPECT_NE(problem_on_board(place, 0, 3, 7, 5, &culprit).find("rank 1 waited in send"),
            std::string::npos);
  EXPECT_EQ(culprit, 1);
}

// Ranks that were paused are found in the middle of calls that all have begun.
TEST(ProblemOnBoard, IsNoCallThatAllRanksHaveBegun) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(4)),
                         {0, 1, 2, 3}};
  CallHistory all[] = {CallHistory(7), CallHistory(7), CallHistory(7), CallHistory(7)};
  const CallSignature sum{.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 8};
  const auto begin = [&](int rank) { place.board->slot(rank).begin_call(all[rank].next(sum)); };
  for (const int r : {0, 1, 2, 3}) {
    place.board->slot(r).set_identity(r, getpid(), "here");
    begin(r);
  }
  for (const int r : {0, 2}) begin(r);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  int culprit = -1;
  EXPECT_EQ(problem_on_board(place, 0, 4, 7, 1000, &culprit), "") << "two still are";
  // Both ends of a message, while the others wait for them.
  CallHistory ends[] = {CallHistory(pair_id(7, 1, 3)), CallHistory(pair_id(7, 1, 3))};
  place.board->slot(1).begin_call(ends[0].next({.op = CommOp::kSend, .root = 3, .count = 8}));
  place.board->slot(3).begin_call(ends[1].next({.op = CommOp::kRecv, .root = 1, .count = 8}));
  EXPECT_EQ(problem_on_board(place, 0, 4, 7, 1000, &culprit), "") << "a message is on its way";
  EXPECT_EQ(culprit, -1);
}

TEST(WaitClock, DoesNotCountAPause) {
  WaitClock clock;
  EXPECT_LT(clock.seconds(), 0.5);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  const double waited = clock.seconds();
  EXPECT_GE(waited, 1.0);
  EXPECT_LT(waited, 1.5);
  EXPECT_LT(clock.seconds() - waited, 0.5);
}

TEST(FindWaitDiagnosis, TellsOfADelayAtTheDeadlineOnly) {
  double next_poll = kFirstPoll;
  EXPECT_EQ(diagnose_wait(nullptr, 4.9, 5, {.doing = "in a sum"}, next_poll).text, "");
  expect_contains(diagnose_wait(nullptr, 5, 5, {.doing = "in a sum"}, next_poll).text,
                  {"waited 5 s (CATENA_TIMEOUT) in a sum"});
}

}  // namespace
}  // namespace catena::comm
