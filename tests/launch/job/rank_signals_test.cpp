// Signals to rank processes of this host, which are children of this test, and by a starter.
#include "job/rank_signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace catena::launch {
namespace {

// Writes down what it is to hand on.
class NotingStarter : public Starter {
 public:
  StarterTerms terms() const override { return {}; }
  StarterNeeds needs() const override { return {"none", 0, 0}; }
  std::string check() override { return ""; }
  StartCommand command(const JobSpec&) const override { return {}; }
  std::string describe_network(const JobSpec&) const override { return ""; }
  std::unique_ptr<StarterOutput> read_output(const JobSpec&, StarterOutput::OnLine) const override {
    return nullptr;
  }
  void signal_ranks(pid_t, const std::string& step, int signal) const override {
    handed_on.emplace_back(step, signal);
  }
  mutable std::vector<std::pair<std::string, int>> handed_on;
};

// A process that waits to be killed.
class Waiting {
 public:
  Waiting() : pid_(fork()) {
    if (pid_ == 0)
      for (;;) pause();
  }
  ~Waiting() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  Waiting(const Waiting&) = delete;
  pid_t pid() const { return pid_; }
  // The signal that ended it.
  int end() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_;
};

RankOutcome started(const std::string& host, pid_t pid) {
  StartReport start;
  start.pid = pid;
  start.host = host;
  start.step = "12.0";
  RankOutcome rank;
  rank.start = start;
  return rank;
}

TEST(RankSignals, OfThisHostGoToTheProcessesAlone) {
  Waiting first, second;
  JobOutcome job;
  job.ranks = {started("here", first.pid()), started("here", second.pid())};
  const NotingStarter starter;
  const RankSignals signals(job, starter, "here");
  EXPECT_TRUE(signals.all_here());
  EXPECT_EQ(signals.pids_here(), (std::vector<int>{first.pid(), second.pid()}));
  Waiting process;  // of the starter
  signals.send_by_starter(process.pid(), SIGTERM);
  EXPECT_TRUE(starter.handed_on.empty());
  signals.send_here(SIGKILL);
  EXPECT_EQ(first.end(), SIGKILL);
  EXPECT_EQ(second.end(), SIGKILL);
  EXPECT_EQ(waitpid(process.pid(), nullptr, WNOHANG), 0) << "the starter goes on";
}

TEST(RankSignals, OfOtherHostsGoByTheStarter) {
  Waiting here, elsewhere, process;
  JobOutcome job;
  job.ranks = {started("here", here.pid()), started("there", elsewhere.pid()), {}};
  const NotingStarter starter;
  const RankSignals signals(job, starter, "here");
  EXPECT_FALSE(signals.all_here());
  EXPECT_TRUE(signals.is_here(job.ranks[0]));
  EXPECT_FALSE(signals.is_here(job.ranks[1]));
  EXPECT_FALSE(signals.is_here(job.ranks[2])) << "not started";
  signals.send_here(SIGKILL);
  EXPECT_EQ(here.end(), SIGKILL);
  EXPECT_EQ(waitpid(elsewhere.pid(), nullptr, WNOHANG), 0) << "another one's number";
  signals.send_by_starter(process.pid(), SIGALRM);
  EXPECT_EQ(starter.handed_on, (std::vector<std::pair<std::string, int>>{{"12.0", SIGALRM}}));
}

TEST(RankSignals, BeforeAnyRankHasStartedTheStarterIsToEnd) {
  Waiting process;
  JobOutcome job;
  job.ranks.resize(2);
  const NotingStarter starter;
  RankSignals(job, starter, "here").send_by_starter(process.pid(), SIGALRM);
  EXPECT_EQ(process.end(), SIGTERM);
  EXPECT_TRUE(starter.handed_on.empty());
}

}  // namespace
}  // namespace catena::launch
