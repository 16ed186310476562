// NCCL between two processes that catena-run starts, on a GPU each or, if need be, on one. The
// suite of all communicators, faults of ranks, and calls that differ, eagerly and when they are
// captured.
#include <gtest/gtest.h>

#include <string>

#include "comm/nccl.h"
#include "comm/suite.h"
#include "mpi/job.h"

namespace catena {
namespace {

using mpi_test::Case;
using mpi_test::holds;
using mpi_test::Outcome;

const auto kName = [](const auto& tested) { return std::string(tested.param.name); };

// Longer than NCCL takes to connect two GPUs at the first call, on a busy machine too.
constexpr int kTimeout = 10;

// Two ranks on the last two GPUs: other tests that run meanwhile begin with the first. Two ranks on
// one GPU, where there is only one: NCCL is told that they are on two hosts.
Outcome launch(const std::string& program, int limit = 60) {
  const int gpus = device_count(DeviceType::kCuda);
  const std::string limits = " --timeout " + std::to_string(kTimeout) + " --start-timeout 40 ";
  const std::string start =
      gpus == 1 ? " -n 2 --cpu" + limits +
                      "sh -c 'CATENA_DEVICE=cuda:0 NCCL_HOSTID=$CATENA_RANK exec \"$@\"' rank "
                : " --gpus " + std::to_string(gpus - 2) + "," + std::to_string(gpus - 1) + limits;
  return mpi_test::shell("env -u CATENA_DEVICE", CATENA_TEST_LAUNCHER + start + program, limit);
}
Outcome launch_fault(const std::string& fault) {
  return launch(std::string(CATENA_TEST_PROGRAM) + " " + fault + " nccl");
}

TEST(NcclProcesses, GiveExactResults) {
  CATENA_NEEDS_NCCL(1);
  const Outcome o = launch(std::string(CATENA_TEST_SUITE) + " nccl --gtest_brief=1", 240);
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_FALSE(holds(o, "[  FAILED  ]")) << o.text;
}

TEST(NcclProcesses, NoFault) {
  CATENA_NEEDS_NCCL(1);
  const Outcome o = launch_fault("none");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(holds(o, "all went well over nccl")) << o.text;
}

class NcclFaults : public testing::TestWithParam<Case> {};
TEST_P(NcclFaults, BlameTheRankAtFault) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_blamed(launch_fault(GetParam().fault), GetParam());
}
// Of two ranks that differ none is the odd one.
INSTANTIATE_TEST_SUITE_P(
    Ways, NcclFaults,
    testing::Values(
        Case{"exit", "exit code 3", 3, 40}, Case{"throw", "rank 1 has no disk", 7, 40},
        Case{"abort", "loss is NaN", 7, 40}, Case{"uncaught", "rank 1 has no disk", 134, 40},
        Case{"kill", "SIGKILL (killed)", 137, 40}, Case{"leave", "left the job by _exit(0)", 1, 40},
        Case{"return",
             "the ranks of this communicator differ in call #2: rank 0 called "
             "all_reduce #2 sum float32[4]; rank 1 called close #2",
             7, 40, -1, 1},
        Case{"max",
             "the ranks of this communicator differ in call #2: rank 0 called all_reduce #2 "
             "sum float32[4]; rank 1 called all_reduce #2 max float32[4]",
             7, 40, -1},
        Case{"types", "received an object of type int, expected float", 7, 40},
        Case{"hang",
             "rank 0 waited 10 s (CATENA_TIMEOUT) for a collective on the GPU: rank 1 did not come "
             "to call "
             "#2",
             7, 40}),
    [](const auto& tested) { return std::string(tested.param.fault); });

class NcclMismatches : public testing::TestWithParam<comm_suite::MismatchCase> {};
TEST_P(NcclMismatches, AreReported) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_named(launch_fault(std::string("mismatch:") + GetParam().name),
                         GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(All, NcclMismatches,
                         testing::ValuesIn(comm_suite::device_mismatch_cases()), kName);

TEST(NcclMismatches, NoResultOfADifferentReductionIsRead) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_named(launch_fault("read"), {"call #4"});
}

class NcclCaptures : public testing::TestWithParam<comm_suite::CaptureCase> {};
TEST_P(NcclCaptures, OfDifferentCallsAreReported) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_named(launch_fault(std::string("capture:") + GetParam().name), GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(All, NcclCaptures, testing::ValuesIn(comm_suite::capture_cases()), kName);

}  // namespace
}  // namespace catena
