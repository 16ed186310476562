// When a job counts as standing still.
#include "job/job_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace catena::launch {
namespace {

constexpr double kTimeout = 10;

RankOutcome rank_on(const std::string& host, int rank, int pid) {
  RankOutcome outcome;
  outcome.hello.emplace();
  outcome.hello->rank = rank;
  outcome.hello->local_rank = rank;
  outcome.hello->host = host;
  outcome.hello->pid = pid;
  return outcome;
}

// A process that does nothing.
class Idle {
 public:
  Idle() : pid_(fork()) {
    if (pid_ == 0)
      for (;;) pause();
  }
  ~Idle() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  void stop() const {
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }

 private:
  pid_t pid_;
};

TEST(JobWatchTest, HostsThatFallSilent) {
  const Idle mpirun;
  const std::vector<RankOutcome> ranks = {rank_on("here", 0, getpid()), rank_on("there", 1, 1)};
  JobWatch watch(kTimeout, "here");
  watch.heard_of("there", true, 100);
  const auto look = [&](double now) { return watch.look(ranks, nullptr, mpirun.pid(), now); };
  EXPECT_FALSE(look(101));
  for (double now = 102; now < 115; now += 2) EXPECT_FALSE(look(now)) << now;
  EXPECT_DOUBLE_EQ(watch.silences(ranks, 114).at("there"), 14);
  const auto standstill = look(116);
  ASSERT_TRUE(standstill);
  EXPECT_EQ(standstill->host, "there");
  EXPECT_EQ(standstill->rank, -1);
  EXPECT_EQ(standstill->reason, "nothing was heard of it for 16 s");
}

TEST(JobWatchTest, SilenceThatMeansNothing) {
  const Idle mpirun;
  std::vector<RankOutcome> ranks = {rank_on("there", 0, 1)};
  JobWatch watch(kTimeout, "here");
  watch.heard_of("there", false, 100);
  EXPECT_TRUE(watch.silences(ranks, 200).empty()) << "a host without signs of life";
  watch.heard_of("there", true, 100);
  EXPECT_FALSE(watch.look(ranks, nullptr, mpirun.pid(), 101));
  EXPECT_FALSE(watch.look(ranks, nullptr, mpirun.pid(), 200)) << "catena-run itself was stopped";
  for (double now = 201; now < 214; ++now)
    EXPECT_FALSE(watch.look(ranks, nullptr, mpirun.pid(), now));
  watch.forget_silence(214);
  EXPECT_FALSE(watch.look(ranks, nullptr, mpirun.pid(), 216));
  ranks[0].end.emplace();
  for (double now = 217; now < 240; ++now)
    EXPECT_FALSE(watch.look(ranks, nullptr, mpirun.pid(), now)) << "its ranks have ended";
}

TEST(JobWatchTest, MpirunThatDoesNotSayThatARankHasEnded) {
  const Idle mpirun;
  mpirun.stop();
  const std::vector<RankOutcome> ranks = {rank_on("here", 3, 1 << 30)};  // no such process
  JobWatch watch(kTimeout, "here");
  for (double now = 100; now < 106; ++now)
    EXPECT_FALSE(watch.look(ranks, nullptr, mpirun.pid(), now));
  const auto standstill = watch.look(ranks, nullptr, mpirun.pid(), 107);
  ASSERT_TRUE(standstill);
  EXPECT_EQ(standstill->reason, "mpirun (process " + std::to_string(mpirun.pid()) +
                                    "), which is stopped (SIGSTOP), does not answer: the process "
                                    "of rank 3 ended 7 s ago and mpirun has not said so");
}

TEST(JobWatchTest, RankThatIsInsideMpiForGood) {
  const Idle mpirun, rank;
  auto board = comm::StatusBoard::create_private(1);
  auto slot = board.slot(0);
  slot.set_identity(0, rank.pid(), "here");
  slot.set_limit(0.01);
  const std::vector<RankOutcome> ranks = {rank_on("here", 0, rank.pid())};
  JobWatch watch(0.01, "here");
  EXPECT_FALSE(watch.look(ranks, &board, mpirun.pid(), 100));
  slot.enter_library();
  EXPECT_FALSE(watch.look(ranks, &board, mpirun.pid(), 101)) << "it may yet end the wait itself";
  usleep(static_cast<useconds_t>((comm::kOutsideMargin + 0.1) * 1e6));
  const auto standstill = watch.look(ranks, &board, mpirun.pid(), 102);
  ASSERT_TRUE(standstill);
  EXPECT_EQ(standstill->rank, 0);
  EXPECT_NE(standstill->reason.find("has been inside one call of MPI"), std::string::npos);
}

TEST(JobWatchTest, RankProcessThatIsStopped) {
  const Idle mpirun, rank;
  rank.stop();
  const std::vector<RankOutcome> ranks = {rank_on("here", 2, rank.pid())};
  JobWatch watch(kTimeout, "here");
  for (double now = 100; now < 115; ++now)
    EXPECT_FALSE(watch.look(ranks, nullptr, mpirun.pid(), now));
  const auto standstill = watch.look(ranks, nullptr, mpirun.pid(), 116);
  ASSERT_TRUE(standstill);
  EXPECT_EQ(standstill->rank, 2);
}

}  // namespace
}  // namespace catena::launch
