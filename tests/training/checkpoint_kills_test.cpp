// A program that trains and saves behind training is killed at random moments: what it has saved
// is whole, and it ends with the bits of a run that nobody disturbed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "temp_folder.h"

namespace catena::training {
namespace {

constexpr int kRounds = 10;  // an issue is closed with 4 times as many: CATENA_TEST_REPEATS=4
constexpr int kFewest = 3;   // on a busy machine, unless the variable is set
constexpr auto kPatience = std::chrono::seconds(8);
constexpr const char *kRanks = "3", *kSteps = "60";

int rounds() {
  const char* repeats = std::getenv("CATENA_TEST_REPEATS");
  return kRounds * std::max(1, repeats ? std::min(std::atoi(repeats), 4) : 1);
}

class TrainingProcess {
 public:
  TrainingProcess(const TempFolder& folder, const std::string& result)
      : checkpoints_(folder / "checkpoints"), result_(folder / result) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execl(CATENA_CHECKPOINT_PROGRAM, "checkpoint_program", checkpoints_.c_str(), result_.c_str(),
            kRanks, kSteps, nullptr);
    ::_exit(127);
  }
  ~TrainingProcess() { kill(); }

  // Whether it has ended well; waits for its end.
  bool ends_well() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  // Whether it was still running.
  bool kill() {
    if (pid_ < 0) return false;
    int status = 0;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status);
  }
  std::string result() const { return read_file(result_); }

 private:
  std::string checkpoints_, result_;
  pid_t pid_ = -1;
};

// The steps that the attempts began with. A save begins when the one before it, of two steps
// earlier, is complete: an attempt does not begin before that one.
std::vector<int> starts_of(const TempFolder& folder) {
  std::ifstream log(folder / "log");
  std::vector<int> starts;
  int begun = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.starts_with("begun ")) begun = std::stoi(line.substr(6));
    if (!line.starts_with("from ")) continue;
    starts.push_back(std::stoi(line.substr(5)));
    EXPECT_GE(starts.back(), begun - 2) << read_file(folder / "log");
  }
  return starts;
}

TEST(CheckpointKills, AtAnyMomentLoseAtMostTheStepsSinceTheLastSave) {
  const TempFolder undisturbed;
  const auto begin = std::chrono::steady_clock::now();
  TrainingProcess whole(undisturbed, "result");
  ASSERT_TRUE(whole.ends_well()) << read_file(undisturbed / "log");
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const std::string expected = whole.result();
  ASSERT_FALSE(expected.empty());

  std::mt19937 random(17);
  int kills = 0, runs = 0, resumed = 0;
  const auto enough = [&] {
    const bool is_long = rounds() > kRounds || std::chrono::steady_clock::now() < begin + kPatience;
    return kills >= (is_long ? rounds() : kFewest);
  };
  while (!enough()) {
    ASSERT_LT(++runs, 10 * rounds());
    const TempFolder folder;
    // Killed some times, then left alone.
    for (int k = 0; k < 4 && !enough(); ++k) {
      TrainingProcess process(folder, "result");
      std::this_thread::sleep_for(time * std::uniform_real_distribution<double>(0.05, 0.6)(random));
      kills += process.kill();
    }
    TrainingProcess last(folder, "result");
    ASSERT_TRUE(last.ends_well()) << read_file(folder / "log");
    EXPECT_EQ(last.result() == expected, true) << read_file(folder / "log");
    const std::vector<int> starts = starts_of(folder);
    ASSERT_FALSE(starts.empty());
    EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end())) << read_file(folder / "log");
    resumed += starts.back() > 0;
    // A save removes what attempts have left; an attempt that finds the last one done makes none.
    const bool has_saved = starts.back() < std::atoi(kSteps);
    const auto entries =
        std::distance(std::filesystem::directory_iterator(folder / "checkpoints"), {});
    EXPECT_TRUE(has_saved ? entries == 2 : entries >= 2) << entries;
  }
  EXPECT_GT(resumed, 0);
}

}  // namespace
}  // namespace catena::training
