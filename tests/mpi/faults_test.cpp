// Ranks that exit, are killed, throw, hang or were started wrongly: the job ends soon, and says
// why.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <ostream>
#include <string>

namespace {

struct Outcome {
  int code = -1;
  std::string text;
  double seconds = 0;
};

Outcome shell(const std::string& command) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  FILE* pipe =
      popen(("CATENA_DEVICE=cpu OMP_NUM_THREADS=1 timeout 60 " + command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) outcome.text.append(buffer, n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

Outcome job(int ranks, const std::string& fault, const std::string& options = "") {
  return shell(std::string(CATENA_TEST_MPIRUN) + " -n " + std::to_string(ranks) + " " + options +
               " " + CATENA_TEST_PROGRAM + " " + fault);
}

bool holds(const Outcome& outcome, const std::string& word) {
  return outcome.text.find(word) != std::string::npos;
}

TEST(MpiFaults, NoFault) {
  const Outcome o = job(3, "none");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(holds(o, "all went well")) << o.text;
}

TEST(MpiFaults, RankThatExits) {
  const Outcome o = job(3, "exit");
  EXPECT_EQ(o.code, 3) << o.text;
  EXPECT_LT(o.seconds, 10);
}

TEST(MpiFaults, RankThatIsKilled) {
  const Outcome o = job(3, "kill");
  EXPECT_NE(o.code, 0) << o.text;
  EXPECT_LT(o.seconds, 30);
  EXPECT_TRUE(holds(o, "signal 9") || holds(o, "rank 1")) << o.text;
}

TEST(MpiFaults, RankThatThrows) {
  const Outcome o = job(3, "throw");
  EXPECT_NE(o.code, 0) << o.text;
  EXPECT_LT(o.seconds, 30);
  EXPECT_TRUE(holds(o, "seen: rank 1 failed")) << o.text;
  EXPECT_TRUE(holds(o, "seen: rank 1 has no disk")) << o.text;
}

TEST(MpiFaults, RankThatThrowsAndIsNotCaught) {
  const Outcome o = job(3, "uncaught");
  EXPECT_NE(o.code, 0) << o.text;
  EXPECT_LT(o.seconds, 30);
  EXPECT_TRUE(holds(o, "rank 1 has no disk")) << o.text;
}

TEST(MpiFaults, RankThatAborts) {
  const Outcome o = job(3, "abort");
  EXPECT_NE(o.code, 0) << o.text;
  EXPECT_LT(o.seconds, 30);
  EXPECT_TRUE(holds(o, "seen: loss is NaN")) << o.text;
}

TEST(MpiFaults, RankThatHangs) {
  const Outcome o = job(3, "hang", "-x CATENA_TIMEOUT=3");
  EXPECT_NE(o.code, 0) << o.text;
  EXPECT_LT(o.seconds, 29);
  EXPECT_TRUE(holds(o, "waited 3 s (CATENA_TIMEOUT) in all_reduce #")) << o.text;
}

// Under catena-run, whose last words name the rank at fault and have its exit code.
struct Case {
  const char* fault;
  const char* error;  // the beginning of what follows "failed first: "
  int code;
  double seconds;  // at most
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.fault; }
class LaunchedFaults : public testing::TestWithParam<Case> {};

TEST_P(LaunchedFaults, BlameTheRankAtFault) {
  const Case& c = GetParam();
  const Outcome o =
      shell(std::string(CATENA_TEST_LAUNCHER) + " -n 3 --cpu --timeout 4 --start-timeout 4 " +
            CATENA_TEST_PROGRAM + " " + c.fault);
  EXPECT_EQ(o.code, c.code) << o.text;
  EXPECT_LT(o.seconds, c.seconds);
  const size_t report = o.text.find("catena-run: rank 1 on ");
  ASSERT_NE(report, std::string::npos) << o.text;
  const size_t error = o.text.find("failed first: ", report);
  ASSERT_NE(error, std::string::npos) << o.text;
  EXPECT_EQ(o.text.find(c.error, error), error + 14) << o.text;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LaunchedFaults,
    testing::Values(
        Case{"exit", "exit code 3", 3, 20}, Case{"throw", "rank 1 has no disk", 7, 20},
        Case{"uncaught", "rank 1 has no disk", 134, 20}, Case{"kill", "SIGKILL (killed)", 137, 20},
        Case{"leave", "left the job by _exit(0)", 1, 20},
        Case{"late", "create_communicator: rank 1 has not called it within 4 s", 1, 30},
        Case{"absent", "create_communicator: rank 1 ended before it joined", 1, 20},
        Case{"return", "the ranks of this communicator differ in call #2: ranks 0, 2", 7, 20},
        Case{"max", "the ranks of this communicator differ in call #2: ranks 0, 2", 7, 20},
        Case{"types", "received an object of type int, expected float", 7, 20},
        Case{"hang", "rank", 7, 30}),
    [](const auto& tested) { return std::string(tested.param.fault); });

TEST(MpiFaults, SingletonIsNotTakenForAJob) {
  const Outcome o = shell(std::string("env CATENA_SIZE=4 CATENA_RANK=2 ") + CATENA_TEST_PROGRAM);
  EXPECT_EQ(o.code, 7) << o.text;
  EXPECT_TRUE(holds(o, "CATENA_SIZE says that the job has 4 ranks, but MPI sees 1")) << o.text;
}

}  // namespace
