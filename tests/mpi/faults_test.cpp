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

Outcome launch(int ranks, const std::string& fault,
               const std::string& limits = "--timeout 4 --start-timeout 4") {
  return shell(std::string(CATENA_TEST_LAUNCHER) + " -n " + std::to_string(ranks) + " --cpu " +
               limits + " " + CATENA_TEST_PROGRAM + " " + fault);
}

TEST(MpiFaults, NoFault) {
  const Outcome o = job(3, "none");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(holds(o, "all went well")) << o.text;
}

// What a fault of rank 1 makes of a job under mpirun alone.
struct Fault {
  const char* name;
  std::vector<std::string> words;  // all of which are said
  const char* options = "";
  int code = 0;  // of the job; 0: any other
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class FaultyRank : public ::testing::TestWithParam<Fault> {};
TEST_P(FaultyRank, EndsTheJob) {
  const Outcome o = job(3, GetParam().name, GetParam().options);
  EXPECT_NE(o.code, 0) << o.text;
  if (GetParam().code != 0) {
    EXPECT_EQ(o.code, GetParam().code) << o.text;
  }
  EXPECT_LT(o.seconds, 29);
  for (const std::string& word : GetParam().words) EXPECT_TRUE(holds(o, word)) << o.text;
}
INSTANTIATE_TEST_SUITE_P(
    Ways, FaultyRank,
    ::testing::Values(
        Fault{"exit", {}, "", 3}, Fault{"kill", {"rank 1"}},
        Fault{"throw", {"seen: rank 1 failed", "seen: rank 1 has no disk"}},
        Fault{"uncaught", {"rank 1 has no disk"}}, Fault{"abort", {"seen: loss is NaN"}},
        Fault{"hang",
              {"waited 3 s (CATENA_TIMEOUT) in all_reduce #2 sum float32[4], in update: rank 1 did "
               "not come to call #2; inspect"},
              "-x CATENA_TIMEOUT=3"}),
    [](const auto& tested) { return std::string(tested.param.name); });

class LaunchedFaults : public ::testing::TestWithParam<Case> {};
TEST_P(LaunchedFaults, BlameTheRankAtFault) {
  mpi_test::expect_blamed(launch(3, GetParam().fault), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LaunchedFaults,
    ::testing::Values(
        Case{"exit", "exit code 3", 3, 20}, Case{"throw", "rank 1 has no disk", 7, 20},
        Case{"abort", "loss is NaN", 7, 20}, Case{"uncaught", "rank 1 has no disk", 134, 20},
        Case{"kill", "SIGKILL (killed)", 137, 20}, Case{"leave", "left the job by _exit(0)", 1, 20},
        Case{"late", "create_communicator: rank 1 has not called it within 4 s", 1, 30},
        Case{"absent", "create_communicator: rank 1 ended before it joined", 1, 20},
        Case{"return",
             "the ranks of this communicator differ in call #2: rank 1 has ended its loop (called "
             "close #2), while ranks 0, 2 go on (called all_reduce #2 sum float32[4], in update)",
             7, 20},
        Case{"max", "the ranks of this communicator differ in call #2: ranks 0, 2", 7, 20},
        Case{"types",
             "the ranks of this communicator differ in call #2: ranks 0, 2 called "
             "broadcast_object #2 root 0 of int, in update; rank 1 called broadcast_object #2 "
             "root 0 of float, in evaluate",
             7, 20},
        Case{"weights",
             "multi-node optimizer: in step 3 since setup, the samples of the ranks add up to 11 "
             "(4 on rank 0, 3 on rank 1, 4 on rank 2), but the batch has 12; ",
             7, 20, -1},
        Case{"skip_update",
             "multi-node optimizer: in step 4 since setup, the number of updates made before it is "
             "3 on ranks 0, 2, 2 on rank 1; every rank must call update() in every step",
             7, 20},
        Case{"send",
             "deadlock: the ranks of this communicator differ in call #1: ranks 0, 2 waited in", 7,
             20},
        Case{"stop", "rank", 7, 30},
        Case{"stop_early", "create_communicator: rank 1 has not", 1, 30},
        Case{"stuck", "rank", 7, 30, 1, 1}, Case{"finalize", "rank", 1, 30, -1},
        Case{"late_exit", "rank 1 did not reach the end of the program within 4 s", 1, 30},
        Case{"destructor", "rank 1 has been in destructors or exit handlers of the program", 1, 30},
        Case{"hang", "rank", 7, 30}),
    [](const auto& tested) { return std::string(tested.param.fault); });

TEST(LaunchedFaults, SayThatAProcessIsStopped) {
  const Outcome o = launch(3, "stop");
  EXPECT_TRUE(holds(o, "rank 1 did not come to call #2; rank 1 (process ")) << o.text;
  EXPECT_TRUE(holds(o, ") is stopped, as by SIGSTOP")) << o.text;
}

// Calls without a deadline of their own, which nobody but another thread can end.
TEST(LaunchedFaults, EndCallsOfMpiThatDoNotReturn) {
  const Outcome stuck = launch(2, "stuck");
  EXPECT_NE(stuck.code, 0) << stuck.text;
  EXPECT_TRUE(holds(stuck, "rank 1 has been inside one call of MPI for ")) << stuck.text;
  const Outcome finalize = launch(2, "finalize");
  // The other rank's MPI_Finalize waits for it: whoever came first speaks first.
  EXPECT_TRUE(holds(finalize, " has been inside MPI_Finalize, which does not return, for "))
      << finalize.text;
  EXPECT_LT(finalize.seconds, 30);
}

// The exit handlers of a rank are in its children as well.
class ForkedChild : public ::testing::TestWithParam<const char*> {};
TEST_P(ForkedChild, LeavesTheJobAlone) {
  for (const Outcome& o : {launch(3, GetParam()), job(3, GetParam())}) {
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_TRUE(holds(o, "all went well")) << o.text;
    EXPECT_FALSE(holds(o, "failed first")) << o.text;
  }
}
INSTANTIATE_TEST_SUITE_P(Ways, ForkedChild,
                         ::testing::Values("fork_exit", "fork_exit_0", "fork_throw",
                                           "fork_terminate"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(ForkedChild, CannotUseTheRanksCommunicator) {
  const Outcome o = launch(3, "fork_call");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(holds(o, "barrier: called in a process that was forked from the rank")) << o.text;
}

// As on a host whose shared memory is too small.
TEST(MpiFaults, RankWithoutAStatusBoard) {
  const Outcome o =
      shell(std::string(CATENA_TEST_MPIRUN) +
            " -n 3 sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then export CATENA_LOCAL_RANK=1 "
            "CATENA_STATUS_BOARD=/catena-not-there; fi; exec " CATENA_TEST_PROGRAM " none'");
  EXPECT_EQ(o.code, 7) << o.text;
  EXPECT_TRUE(holds(o, "seen: create_communicator: rank 1 on ")) << o.text;
  EXPECT_TRUE(holds(o, ": status board: cannot open /catena-not-there: No such file")) << o.text;
  EXPECT_FALSE(holds(o, "all ranks must name the same type")) << o.text;
  const Outcome launched =
      shell(std::string(CATENA_TEST_LAUNCHER) +
            " -n 3 --cpu sh -c 'if [ $CATENA_RANK = 1 ]; then unset CATENA_STATUS_BOARD; fi; "
            "exec " CATENA_TEST_PROGRAM " none'");
  EXPECT_TRUE(holds(launched, "rank 1 on ")) << launched.text;
  EXPECT_TRUE(holds(launched, "rank 0 of the same host has a status board and this one has none"))
      << launched.text;
}

// As a script that trains and then tests.
TEST(LaunchedFaults, SayThatARankHasRunAProgramBefore) {
  const std::string program = std::string(CATENA_TEST_PROGRAM) + " none";
  const Outcome o = shell(std::string(CATENA_TEST_LAUNCHER) + " -n 2 --cpu sh -c '" + program +
                          " && exec " + program + "'");
  EXPECT_TRUE(holds(o, "all went well")) << o.text;
  mpi_test::expect_blamed(o, {"", "create_communicator: rank", 7, 20, -1});
  EXPECT_TRUE(holds(o, "has run another program of the job before this one")) << o.text;
}

TEST(LaunchedFaults, LetARankThatCaughtItsErrorJoinAgain) {
  const Outcome o =
      shell(std::string(CATENA_TEST_LAUNCHER) +
            " -n 2 --cpu " CATENA_TEST_SUITE " mpi --gtest_filter=Process.ExceptionEndsTheOthers");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(holds(o, "[  PASSED  ] 1 test")) << o.text;
}

// Of two ranks the one that has ended its loop is at fault.
TEST(LaunchedFaults, BlameOneOfTwoThatEndsItsLoop) {
  mpi_test::expect_blamed(
      launch(2, "return"),
      {"return", "the ranks of this communicator differ in call #2: rank 1 has ended", 7, 20});
}

TEST(LaunchedFaults, BlameTheRankThatLeavesALoopOfMessages) {
  const Outcome o = launch(2, "return_from_messages");
  mpi_test::expect_blamed(o, {"return_from_messages",
                              "rank 1 has left (called close #2), while rank 0 waits in recv #1 "
                              "float32[4] from rank 1",
                              7, 20});
  EXPECT_FALSE(holds(o, "deadlock")) << o.text;
}

// A pause of a healthy job, by Ctrl-Z, a debugger or a suspended machine, is no failure.
class LaunchedPause : public ::testing::TestWithParam<const char*> {};
TEST_P(LaunchedPause, EndsNothing) {
  const Outcome o = launch(4, GetParam(), "--timeout 60 --start-timeout 60");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(holds(o, "all went well")) << o.text;
  EXPECT_GT(o.seconds, 6) << o.text;
}
INSTANTIATE_TEST_SUITE_P(Of, LaunchedPause, ::testing::Values("pause_one", "pause_all"),
                         [](const auto& tested) { return std::string(tested.param); });

// One of each way in which ranks find out; suite_main.cpp has them all.
std::vector<comm_suite::MismatchCase> mismatch_of_each_way() {
  std::vector<comm_suite::MismatchCase> cases = comm_suite::mismatch_cases();
  std::erase_if(cases, [](const auto& one) {
    const std::string ways = "operation object_kind in_a_group axis_of_a_mesh message_size";
    return ways.find(one.name) == std::string::npos;
  });
  return cases;
}

class LaunchedMismatches : public ::testing::TestWithParam<comm_suite::MismatchCase> {};
TEST_P(LaunchedMismatches, AreReported) {
  mpi_test::expect_named(launch(2, std::string("mismatch:") + GetParam().name), GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(All, LaunchedMismatches, ::testing::ValuesIn(mismatch_of_each_way()),
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
