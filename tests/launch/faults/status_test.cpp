// catena-run --status beside running jobs.
#include "launched.h"

namespace catena::launch::test {
namespace {

Result status(const Words& words = {}) {
  Words all = {"--status"};
  all.insert(all.end(), words.begin(), words.end());
  return run(all);
}

std::string status_of(const Launched& running) {
  return status({std::to_string(running.pid())}).out;
}

// Asks until the text is there, as ranks take their time to start.
std::string wait_for_status(const Launched& running, const std::string& text) {
  std::string out;
  const auto start = Clock::now();
  while (out.find(text) == std::string::npos && seconds_since(start) < 15) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    out = status_of(running);
  }
  return out;
}

TEST(Status, ALineARankAndTheStraggler) {
  Launched running({"-n", "3", "--cpu", FAULT_PROGRAM, "late", "1"});
  // When all three have begun: a rank that has not is behind too.
  const std::string out = wait_for_status(running, "while ranks 0, 2 are at call #3");
  EXPECT_TRUE(out.starts_with("job ")) << out;
  expect_contains(out, {"catena-run is process " + std::to_string(running.pid()) + ", 3 ranks: ",
                        "  rank 0 on " + host() + ", process ",
                        ": in broadcast #3 float32[64] root 0 in epoch 2, since ",
                        " s (epoch 2), after all_reduce #2 sum float32[1000]\n",
                        "  behind: rank 1 at call #2, while ranks 0, 2 are at call #3, since "});
  kill(running.pid(), SIGTERM);
  running.finish();
}

TEST(Status, StoppedAndEndedRanks) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_PROGRAM, "gone", "1"});
  const std::string out = wait_for_status(running, ": ended\n");
  const std::size_t at = out.find("rank 0 on " + host() + ", process ");
  ASSERT_NE(at, out.npos) << out;
  expect_contains(out, {"rank 1 on " + host()});
  const pid_t program = std::atoi(out.c_str() + out.find("process ", at) + 8);
  kill(program, SIGSTOP);
  const std::string stopped = wait_for_status(running, "stopped (SIGSTOP); ");
  expect_contains(stopped, {"stopped (SIGSTOP); "});
  kill(program, SIGCONT);
  // Any process of the job names it.
  EXPECT_EQ(status({std::to_string(program)}).status, 0);
  EXPECT_EQ(status({std::to_string(find_rank_process(mark))}).status, 0);
  kill(running.pid(), SIGTERM);
  running.finish();
}

TEST(Status, SeveralJobsAreListed) {
  Launched first({"-n", "1", "--cpu", FAULT_PROGRAM, "hang"});
  Launched second({"-n", "1", "--cpu", FAULT_PROGRAM, "hang"});
  wait_for_status(first, "rank 0");
  wait_for_status(second, "rank 0");
  const Result all = status();
  EXPECT_EQ(all.status, 0);
  expect_contains(all.out, {"process " + std::to_string(first.pid()) + ",",
                            "process " + std::to_string(second.pid()) + ","});
  EXPECT_EQ(all.out.find("  rank 0"), all.out.npos) << all.out;
  expect_contains(all.out, {"--status JOB"});
  // The number that the list shows chooses one.
  const std::string job = status_of(second).substr(4, 8);
  const Result one = status({job});
  expect_contains(one.out, {"process " + std::to_string(second.pid())});
  EXPECT_EQ(one.out.find("process " + std::to_string(first.pid())), one.out.npos) << one.out;
  kill(first.pid(), SIGTERM);
  kill(second.pid(), SIGTERM);
  first.finish();
  second.finish();
}

TEST(Status, NoSuchJob) {
  const Result result = status({"1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "catena-run: no job 1 of this user has ranks on this machine\n");
  EXPECT_EQ(status({"1", "2"}).status, 2);
}

// Programs have SIGUSR1 for themselves, as for a checkpoint before a requeue.
TEST(Status, DoesNotTakeSignalsFromPrograms) {
  Launched running({"-n", "1", "--cpu", "sh", "-c",
                    "trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.1; done"});
  running.read_for(15, "ready");
  expect_contains(status_of(running), {"rank 0"});
  kill(running.pid(), SIGUSR1);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {"got it"});
}

// One that knows no SIGUSR1 would be ended by it.
TEST(Status, IsTheAnswerToSigusr1) {
  Launched running({"-n", "2", "--cpu", "sh", "-c", "sleep 2; echo still here"});
  wait_for_status(running, "rank 1 on");
  kill(running.pid(), SIGUSR1);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 0) << result.err;
  expect_contains(result.out, {"still here"});
  expect_contains(result.err, {"catena-run: job ", "  rank 1 on " + host() + ", process "});
}

}  // namespace
}  // namespace catena::launch::test
