// Ranks that exit, are killed, throw, hang or were started wrongly: the job ends soon, and says
// why.
#include <gtest/gtest.h>

#include <string>

#include "comm/suite.h"
#include "mpi/job.h"

namespace catena {
namespace {

using mpi_test::Case;
using mpi_test::holds;
using mpi_test::Outcome;

Outcome shell(const std::string& command) { return mpi_test::shell("CATENA_DEVICE=cpu", command); }

Outcome job(int ranks, const std::string& fault, const std::string& options = "") {
  return shell(std::string(CATENA_TEST_MPIRUN) + " -n " + std::to_string(ranks) + " " + options +
               " " + CATENA_TEST_PROGRAM + " " + fault);
}

Outcome launch(int ranks, const std::string& fault) {
  return shell(std::string(CATENA_TEST_LAUNCHER) + " -n " + std::to_string(ranks) +
               " --cpu --timeout 4 --start-timeout 4 " + CATENA_TEST_PROGRAM + " " + fault);
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
  EXPECT_TRUE(holds(o,
                    "waited 3 s (CATENA_TIMEOUT) in all_reduce #2 sum float32[4]: rank 1 did not "
                    "come to call #2; the stacks or logs"))
      << o.text;
}

class LaunchedFaults : public testing::TestWithParam<Case> {};
TEST_P(LaunchedFaults, BlameTheRankAtFault) {
  mpi_test::expect_blamed(launch(3, GetParam().fault), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LaunchedFaults,
    testing::Values(
        Case{"exit", "exit code 3", 3, 20}, Case{"throw", "rank 1 has no disk", 7, 20},
        Case{"abort", "loss is NaN", 7, 20}, Case{"uncaught", "rank 1 has no disk", 134, 20},
        Case{"kill", "SIGKILL (killed)", 137, 20}, Case{"leave", "left the job by _exit(0)", 1, 20},
        Case{"late", "create_communicator: rank 1 has not called it within 4 s", 1, 30},
        Case{"absent", "create_communicator: rank 1 ended before it joined", 1, 20},
        Case{"return", "the ranks of this communicator differ in call #2: ranks 0, 2", 7, 20},
        Case{"max", "the ranks of this communicator differ in call #2: ranks 0, 2", 7, 20},
        Case{"types", "received an object of type int, expected float", 7, 20},
        Case{"hang", "rank", 7, 30}),
    [](const auto& tested) { return std::string(tested.param.fault); });

class LaunchedMismatches : public testing::TestWithParam<comm_suite::MismatchCase> {};
TEST_P(LaunchedMismatches, AreReported) {
  mpi_test::expect_named(launch(2, std::string("mismatch:") + GetParam().name), GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(All, LaunchedMismatches, testing::ValuesIn(comm_suite::mismatch_cases()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(LaunchedMismatches, NoResultOfADifferentReductionIsRead) {
  mpi_test::expect_named(launch(2, "read"), {"call #4", "max float32[4]"});
}

TEST(MpiFaults, SingletonIsNotTakenForAJob) {
  const Outcome o = shell(std::string("env CATENA_SIZE=4 CATENA_RANK=2 ") + CATENA_TEST_PROGRAM);
  EXPECT_EQ(o.code, 7) << o.text;
  EXPECT_TRUE(holds(o, "CATENA_SIZE says that the job has 4 ranks, but MPI sees 1")) << o.text;
}

}  // namespace
}  // namespace catena
