// When a job counts as hanging.
#include "job/job_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "job/report.h"
#include "starter/mpirun_starter.h"

namespace catena::launch {
namespace {

constexpr double kTimeout = 10;
const StarterTerms kTerms = MpirunStarter("mpirun").terms();

RankOutcome rank_on(const std::string& host, int rank, int pid) {
  RankOutcome outcome;
  outcome.start.emplace();
  outcome.start->rank = rank;
  outcome.start->local_rank = rank;
  outcome.start->host = host;
  outcome.start->pid = pid;
  outcome.start->started = comm::process_life(pid).start;
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
  watch.note_heard("there", true, 100);
  const auto check = [&](double now) { return watch.check(ranks, nullptr, mpirun.pid(), now); };
  EXPECT_FALSE(check(101));
  for (double now = 102; now < 115; now += 2) EXPECT_FALSE(check(now)) << now;
  EXPECT_DOUBLE_EQ(watch.silences(ranks, 114).at("there"), 14);
  const auto hang = check(116);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->host, "there");
  EXPECT_EQ(hang->culprit(), -1);
  EXPECT_EQ(describe_hang(*hang, kTerms), "nothing was heard of it for 16 s");
}

TEST(JobWatchTest, SilenceThatMeansNothing) {
  const Idle mpirun;
  std::vector<RankOutcome> ranks = {rank_on("there", 0, 1)};
  JobWatch watch(kTimeout, "here");
  watch.note_heard("there", false, 100);
  EXPECT_TRUE(watch.silences(ranks, 200).empty()) << "a host without signs of life";
  watch.note_heard("there", true, 100);
  EXPECT_FALSE(watch.check(ranks, nullptr, mpirun.pid(), 101));
  EXPECT_FALSE(watch.check(ranks, nullptr, mpirun.pid(), 200)) << "catena-run itself was stopped";
  for (double now = 201; now < 214; ++now)
    EXPECT_FALSE(watch.check(ranks, nullptr, mpirun.pid(), now));
  watch.forget_silence(214);
  EXPECT_FALSE(watch.check(ranks, nullptr, mpirun.pid(), 216));
  ranks[0].end.emplace();
  for (double now = 217; now < 240; ++now)
    EXPECT_FALSE(watch.check(ranks, nullptr, mpirun.pid(), now)) << "its ranks have ended";
}

TEST(JobWatchTest, MpirunThatDoesNotSayThatARankHasEnded) {
  const Idle mpirun;
  mpirun.stop();
  const std::vector<RankOutcome> ranks = {rank_on("here", 3, 1 << 30)};  // no such process
  JobWatch watch(kTimeout, "here");
  for (double now = 100; now < 106; ++now)
    EXPECT_FALSE(watch.check(ranks, nullptr, mpirun.pid(), now));
  const auto hang = watch.check(ranks, nullptr, mpirun.pid(), 107);
  ASSERT_TRUE(hang);
  EXPECT_EQ(describe_hang(*hang, kTerms),
            "mpirun (process " + std::to_string(mpirun.pid()) +
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
  EXPECT_FALSE(watch.check(ranks, &board, mpirun.pid(), 100));
  slot.enter_library();
  EXPECT_FALSE(watch.check(ranks, &board, mpirun.pid(), 101)) << "it may yet end the wait itself";
  usleep(static_cast<useconds_t>((comm::kOutsideMargin + 0.1) * 1e6));
  const auto hang = watch.check(ranks, &board, mpirun.pid(), 102);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->culprit(), 0);
  EXPECT_NE(describe_hang(*hang, kTerms).find("has been inside one call of MPI"),
            std::string::npos);
  mpirun.stop();
  const auto kept = watch.check(ranks, &board, mpirun.pid(), 103);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->culprit(), -1) << "MPI waits for mpirun, as MPI_Finalize does";
  const std::string text = describe_hang(*kept, kTerms);
  EXPECT_EQ(text.find("mpirun (process " + std::to_string(mpirun.pid()) +
                      "), which is stopped (SIGSTOP), does not answer: rank 0"),
            0u)
      << text;
}

TEST(JobWatchTest, RankProcessThatIsStopped) {
  const Idle mpirun, rank;
  rank.stop();
  const std::vector<RankOutcome> ranks = {rank_on("here", 2, rank.pid())};
  JobWatch watch(kTimeout, "here");
  for (double now = 100; now < 115; ++now)
    EXPECT_FALSE(watch.check(ranks, nullptr, mpirun.pid(), now));
  const auto hang = watch.check(ranks, nullptr, mpirun.pid(), 116);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->culprit(), 2);
}

}  // namespace
}  // namespace catena::launch
