// How a job under catena-run ends when somebody ends it: Ctrl-C, signals, from another host.
#include <sys/file.h>
#include <sys/stat.h>

#include "launched.h"

namespace catena::launch::test {
namespace {

TEST(Endings, CtrlCEndsAllRanks) { expect_clean_end(SIGINT, {"--cpu"}, "hang", 30); }

// Another host, as far as host names go: the launcher then reaches its ranks through mpirun only.
class AnotherHost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("unshare --uts true 2>/dev/null") != 0)
      GTEST_SKIP() << "no permission to change the host name of a process";
  }
  const Script mpirun_{"faraway-mpirun",
                       "#!/bin/sh\n[ \"$1\" = --version ] && exec mpirun --version\n"
                       "exec unshare --uts sh -c 'hostname faraway; exec mpirun \"$@\"' - "
                       "\"$@\"\n"};
};

TEST_F(AnotherHost, FailureIsReportedAndEndsTheOthers) {
  const Result result =
      run({"--mpirun", mpirun_.path(), "-n", "3", "--cpu", FAULT_PROGRAM, "operation", "2"});
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_EQ(report_of(result),
            "catena-run: rank 2 on faraway failed first: SIGKILL (killed)\n"
            "  it was doing: epoch 2\n"
            "  its last collective: all_reduce #2 sum float32[1000]\n"
            "  ranks 0-1: broadcast #3 float32[64] root 0 in epoch 2\n");
}

TEST_F(AnotherHost, TermEndsAllRanks) {
  const std::string mark = new_mark();
  Launched running(
      {"--mpirun", mpirun_.path(), "-n", "2", "--cpu", "--env", mark, FAULT_PROGRAM, "stubborn"});
  wait_for_processes(mark, 5, 10);
  running.read_for(0.3);
  const auto start = Clock::now();
  kill(running.pid(), SIGTERM);
  EXPECT_EQ(running.finish().status, 143);
  EXPECT_LT(seconds_since(start), 30);
  EXPECT_EQ(count_processes(mark), 0);
}

// As when the kernel runs out of memory and picks the wrong one.
TEST(Endings, RankProcessIsKilled) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_PROGRAM, "hang"});
  wait_for_processes(mark, 5, 10);
  running.read_for(0.3);
  const pid_t pid = find_rank_process(mark);
  ASSERT_GT(pid, 0);
  kill(pid, SIGKILL);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 128 + SIGKILL);
  expect_contains(report_of(result), {" failed first: SIGKILL (killed)\n"});
  EXPECT_EQ(count_processes(mark), 0);
  EXPECT_FALSE(boards_are_left());
}

// The rank process is called catena-run, too: whoever ends the wrong line of ps gets to it.
class Outsider : public ::testing::TestWithParam<int> {};

TEST_P(Outsider, ThatEndsARankProcessIsNamed) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_PROGRAM, "hang"});
  wait_for_processes(mark, 5, 10);
  running.read_for(0.3);
  const pid_t pid = find_rank_process(mark);
  ASSERT_GT(pid, 0);
  kill(pid, GetParam());
  const Result result = running.finish();
  EXPECT_EQ(result.status, 128 + GetParam());
  const std::string text = report_of(result);
  expect_contains(text, {"was asked to end by SIG" + std::string(sigabbrev_np(GetParam())),
                         ", not by catena-run\n"});
  EXPECT_EQ(count_processes(mark), 0);
}

TEST_P(Outsider, ThatEndsMpirunIsNamed) {
  if (GetParam() == SIGQUIT) GTEST_SKIP() << "mpirun dies by it";
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_PROGRAM, "hang"});
  wait_for_processes(mark, 5, 10);
  running.read_for(0.3);
  kill(find_mpirun(mark), GetParam());
  const Result result = running.finish();
  EXPECT_EQ(result.status, 1);
  expect_contains(result.err, {"catena-run: mpirun was asked to stop by a signal"});
  wait_for_processes(mark, 0, 5);
  EXPECT_EQ(count_processes(mark), 0);
}

INSTANTIATE_TEST_SUITE_P(Signals, Outsider, ::testing::Values(SIGTERM, SIGHUP, SIGALRM, SIGQUIT),
                         [](const auto& info) { return sigabbrev_np(info.param); });

// All ranks get the time to save, and the exit code says that the job is not complete.
TEST(Endings, AllRanksSaveWhenAnOutsiderEndsOne) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--grace", "5", "--env", mark, "bash", "-c",
                    "trap 'echo saving $CATENA_RANK; exit 0' TERM; echo ready; "
                    "for i in $(seq 100); do sleep 0.1; done"});
  running.read_for(10, "ready\n");
  running.read_for(0.5);
  kill(find_rank_process(mark), SIGTERM);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 128 + SIGTERM);
  for (const char* line : {"saving 0\n", "saving 1\n"}) expect_contains(result.out, {line});
  expect_contains(report_of(result), {"was asked to end by SIGTERM"});
}

#ifdef FAULT_MPI_PROGRAM
// It is not mpirun's fault, which ends the others because the rank has left MPI without a word.
TEST(Endings, ARankWhoseExitCodeTheSystemCutsToZeroIsNamed) {
  const Result result = run({"-n", "3", "--cpu", FAULT_MPI_PROGRAM, "exit256"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(report_of(result).find(first_failure(2, "exit code 256, of which the system keeps 0")),
            0u)
      << result.err;
}

TEST(Endings, AnOutsiderIsNamedWhileRanksCommunicate) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_MPI_PROGRAM, "wait"});
  running.read_for(10, "waiting");
  kill(find_rank_process(mark), SIGTERM);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 128 + SIGTERM);
  expect_contains(report_of(result), {"was asked to end by SIGTERM"});
}
#endif

TEST(Endings, SecondCtrlCDoesNotWait) {
  Launched running({"-n", "2", "--cpu", "--grace", "60", FAULT_PROGRAM, "stubborn"});
  running.read_for(0.5);
  const auto start = Clock::now();
  kill(running.pid(), SIGINT);
  running.read_for(0.2);
  kill(running.pid(), SIGINT);
  EXPECT_EQ(running.finish().status, 130);
  EXPECT_LT(seconds_since(start), 30);
}

// A folder for temporary files of its own, below a short name.
class TemporaryFiles {
 public:
  TemporaryFiles() : setting_("TMPDIR", make()) {}
  ~TemporaryFiles() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::size_t count() const {
    const std::filesystem::directory_iterator entries(path_);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

 private:
  const std::string& make() {
    path_ = "/tmp/ct-" + std::to_string(getpid());
    std::filesystem::create_directories(path_);
    return path_;
  }
  std::string path_;
  Setting setting_;
};

TEST(Endings, KilledMpirunLeavesNoFolders) {
  const TemporaryFiles temporary;
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_PROGRAM, "hang"});
  wait_for_processes(mark, 5, 10);
  running.read_for(0.3);
  ASSERT_EQ(temporary.count(), 1u);
  const pid_t mpirun = find_mpirun(mark);
  ASSERT_GT(mpirun, 0);
  kill(mpirun, SIGKILL);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 1);
  expect_contains(result.err, {"catena-run: mpirun was ended by SIGKILL (killed) and no rank"});
  EXPECT_EQ(temporary.count(), 0u);
  wait_for_processes(mark, 0, 5);
}

TEST(Endings, FoldersForTemporaryFilesThatCannotBeWrittenAreNamed) {
  const Setting setting("TMPDIR", "/proc");
  const Result result = run({"-n", "1", "--cpu", "true"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err.find("catena-run: files of mpirun cannot be written to '/proc': "), 0u)
      << result.err;
}

#ifdef FAULT_MPI_PROGRAM
TEST(Endings, KilledRanksLeaveNoSharedMemory) {
  EXPECT_EQ(run({"-n", "3", "--cpu", FAULT_MPI_PROGRAM, "kill"}).status, 128 + SIGKILL);
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_MPI_PROGRAM, "wait"});
  running.read_for(10, "waiting");
  kill(find_mpirun(mark), SIGKILL);
  EXPECT_NE(running.finish().status, 0);
  wait_for_processes(mark, 0, 5);
  for (const auto& segment : left_in_shared_memory("vader_segment.")) {
    struct stat status {};
    const bool young = stat(segment.c_str(), &status) == 0 && time(nullptr) - status.st_mtime < 10;
    EXPECT_FALSE(young) << segment;
  }
}
#endif

TEST(Endings, FoldersOfKilledLaunchersAreRemovedByTheNext) {
  const TemporaryFiles temporary;
  const auto make = [&](const std::string& name, std::chrono::minutes age) {
    const std::string path = temporary.path() + "/" + name;
    std::filesystem::create_directories(path + "/below");
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
    return path;
  };
  const auto make_marked = [&](const std::string& name, std::chrono::minutes age) {
    std::filesystem::create_directories(temporary.path() + "/" + name);
    std::ofstream(temporary.path() + "/" + name + "/made-by-catena-run") << "x";
    return make(name, age);
  };
  const std::string old = make_marked(".catena-run-oldold", std::chrono::minutes(5));
  const std::string fresh = make_marked(".catena-run-newnew", std::chrono::minutes(0));
  const std::string used = make_marked(".catena-run-inuse1", std::chrono::minutes(5));
  const std::string other = make(".catena-run-others", std::chrono::minutes(5));
  const std::string logs = make("catena-run-logs", std::chrono::minutes(5));
  const int lock = open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(run({"-n", "1", "--cpu", "true"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(old));
  for (const std::string& path : {fresh, used, other, logs})
    EXPECT_TRUE(std::filesystem::exists(path));
  close(lock);
}

TEST(Endings, TermEndsRanksThatIgnoreIt) { expect_clean_end(SIGTERM, {"--cpu"}, "stubborn", 30); }
TEST(Endings, KilledLauncherLeavesNothing) { expect_clean_end(SIGKILL, {"--cpu"}, "hang", 30); }

}  // namespace
}  // namespace catena::launch::test
