#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "status/status_board.h"
#include "stopped_child.h"

namespace catena::comm {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(StatusLife, SignsOfLifeAreRead) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  EXPECT_EQ(board.read(0).limit_ns, 0u);
  EXPECT_EQ(board.read(0).exit_stage, ExitStage::none);
  const std::uint64_t before = monotonic_ns();
  slot.set_limit(12);
  slot.set_phase(Phase::running);
  slot.beat();
  slot.enter_library();
  SlotSnapshot seen = board.read(0);
  EXPECT_EQ(seen.limit_ns, 12 * kSecond);
  EXPECT_GE(seen.phase_since_ns, before);
  EXPECT_GE(seen.beat_ns, before);
  EXPECT_GE(seen.library_since_ns, before);
  EXPECT_EQ(seen.call_since_ns, 0u);
  slot.leave_library();
  slot.set_exit_stage(ExitStage::leaving);
  CallHistory history(1);
  slot.begin_call(history.next({.op = CommOp::kBarrier}));
  seen = board.read(0);
  EXPECT_EQ(seen.library_since_ns, 0u);
  EXPECT_EQ(seen.exit_stage, ExitStage::leaving);
  EXPECT_GE(seen.exit_since_ns, before);
  EXPECT_GE(seen.call_since_ns, before);
}

TEST(StatusLife, StuckIsWhatHasNoDeadlineOfItsOwn) {
  SlotSnapshot slot;
  slot.rank = 3;
  slot.library_since_ns = 10 * kSecond;
  slot.operation = "barrier #4";
  EXPECT_EQ(describe_stuck(slot, 1000 * kSecond, 2), "") << "nothing is known of a limit";
  slot.limit_ns = 20 * kSecond;
  EXPECT_EQ(describe_stuck(slot, 31 * kSecond, 2), "");
  EXPECT_EQ(describe_stuck(slot, 33 * kSecond, 2),
            "rank 3 has been inside one call of MPI for 23 s (the limit is 20 s, CATENA_TIMEOUT or "
            "catena-run --timeout), in barrier #4: MPI or the network below it does not answer");
  slot.phase = Phase::joining;
  EXPECT_EQ(describe_stuck(slot, 33 * kSecond, 2), "") << "that has a limit of its own";
  slot.phase = Phase::running;
  EXPECT_EQ(describe_stuck(slot, 5 * kSecond, 2), "") << "entered after the time was taken";
  slot.library_since_ns = 0;
  EXPECT_EQ(describe_stuck(slot, 1000 * kSecond, 2), "")
      << "a rank may compute as long as it likes";
  slot.exit_stage = ExitStage::released;
  slot.exit_since_ns = 10 * kSecond;
  EXPECT_NE(describe_stuck(slot, 33 * kSecond, 2).find("rank 3 has been in destructors"),
            std::string::npos);
  slot.phase = Phase::finished;
  EXPECT_EQ(describe_stuck(slot, 33 * kSecond, 2), "") << "its process is gone";
}

TEST(StatusLife, StoppedProcessesAreSeen) {
  testing::StoppedChild child;
  ASSERT_TRUE(child.stopped());
  EXPECT_EQ(process_state(child.pid()), 'T');
  child.end();
  EXPECT_EQ(process_state(child.pid()), '\0');
  EXPECT_EQ(process_state(getpid()), 'R');
}

TEST(StatusLife, StartsTellProcessesApart) {
  EXPECT_GT(process_life(getpid()).start, 0u);
  const std::uint64_t start = process_life(getpid()).start;
  prctl(PR_SET_NAME, "a) S (b");
  EXPECT_EQ(process_life(getpid()).start, start) << "whatever the name";
  prctl(PR_SET_NAME, "test_status");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // more than a tick
  testing::StoppedChild child;
  EXPECT_GT(process_life(child.pid()).start, process_life(getpid()).start);
  child.end();
  EXPECT_EQ(process_life(child.pid()).start, 0u);
}

// Between opening and reading its file the process may end; the read fails with ESRCH then.
TEST(StatusLife, ProcessesThatEndMeanwhileAreSeen) {
  for (int round = 0; round < 100; ++round) {
    testing::StoppedChild child;
    std::thread ending([&child] { child.end(); });
    char state = 'T';
    EXPECT_NO_THROW(while (state) state = process_state(child.pid()));
    ending.join();
  }
}

TEST(StatusLife, TextsOfOthersCannotControlATerminal) {
  const StatusBoard board = StatusBoard::create_private(1);
  board.slot(0).fail("\x1b]0;title\x07");
  board.slot(0).set_operation("\x1b[2J");
  EXPECT_EQ(board.read(0).own_failure.text, "\\x1b]0;title\\x07");
  EXPECT_EQ(board.read(0).operation, "\\x1b[2J");
}

}  // namespace
}  // namespace catena::comm
