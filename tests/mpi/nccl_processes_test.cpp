// NCCL between two processes that catena-run starts, or as many as CATENA_TEST_RANKS says, on a GPU
// each or, where there are fewer, on shared ones. The suite of all communicators, faults of ranks,
// and calls that differ, eagerly and when they are captured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

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

int ranks() {
  const char* asked = std::getenv("CATENA_TEST_RANKS");
  return asked ? std::max(2, std::atoi(asked)) : 2;
}
bool is_pair() { return ranks() == 2; }

// A GPU for each rank, of the last ones: other tests that run meanwhile begin with the first.
std::string last_gpus(int count) {
  std::string list;
  for (int gpu = count - ranks(); gpu < count; ++gpu)
    list += (list.empty() ? "" : ",") + std::to_string(gpu);
  return " --gpus " + list;
}

// Fewer GPUs than ranks. NCCL takes one rank of a host for each GPU: it is told that each is on a
// host of its own.
std::string shared_gpus(int count, std::string& program) {
  program = "sh -c 'CATENA_DEVICE=cuda:$((CATENA_RANK % " + std::to_string(count) +
            ")) NCCL_HOSTID=$CATENA_RANK exec \"$@\"' rank " + program;
  return " --cpu -n " + std::to_string(ranks());
}

Outcome launch(std::string program, int limit = 60) {
  const int gpus = device_count(DeviceType::kCuda);
  const std::string where = gpus < ranks() ? shared_gpus(gpus, program) : last_gpus(gpus);
  return mpi_test::shell("env -u CATENA_DEVICE",
                         CATENA_TEST_LAUNCHER + where + " --timeout " + std::to_string(kTimeout) +
                             " --start-timeout 40 " + program,
                         limit);
}
Outcome launch_fault(const std::string& fault) {
  return launch(std::string(CATENA_TEST_PROGRAM) + " " + fault + " nccl");
}

// Ranks that share a GPU wait for their turns: the suite is cut into parts then, so that a rank
// that hangs is noticed in time.
TEST(NcclProcesses, GiveExactResults) {
  CATENA_NEEDS_NCCL(1);
  const int parts = device_count(DeviceType::kCuda) < ranks() ? 3 : 1;
  for (int part = 0; part < parts; ++part) {
    const std::string shard = "env GTEST_TOTAL_SHARDS=" + std::to_string(parts) +
                              " GTEST_SHARD_INDEX=" + std::to_string(part) + " ";
    const Outcome o = launch(shard + CATENA_TEST_SUITE + " nccl --gtest_brief=1", 240);
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_FALSE(holds(o, "[  FAILED  ]")) << o.text;
  }
}

TEST(NcclProcesses, NoFault) {
  CATENA_NEEDS_NCCL(1);
  const Outcome o = launch_fault("none");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(holds(o, "all went well over nccl")) << o.text;
}

// Of two ranks that differ none is the odd one, and which of several waits out its time is open.
std::vector<Case> faults() {
  const char* returned =
      "the ranks of this communicator differ in call #2: rank 1 has ended its loop (called close "
      "#2), while rank";
  const char* other_reduction =
      "the ranks of this communicator differ in call #2: rank 0 called all_reduce #2 sum "
      "float32[4]; rank 1 called all_reduce #2 max float32[4]";
  const char* of_several = "the ranks of this communicator differ in call #2: ranks 0, 2";
  const char* hung =
      "rank 0 waited 10 s (CATENA_TIMEOUT) for a collective on the GPU: rank 1 did not come to "
      "call #2";
  const int odd = is_pair() ? -1 : 1;
  return {Case{"exit", "exit code 3", 3, 40},
          Case{"throw", "rank 1 has no disk", 7, 40},
          Case{"abort", "loss is NaN", 7, 40},
          Case{"uncaught", "rank 1 has no disk", 134, 40},
          Case{"kill", "SIGKILL (killed)", 137, 40},
          Case{"kill_large", "SIGKILL (killed)", 137, 40},
          Case{"kill_between_messages", "SIGKILL (killed)", 137, 40},
          Case{"throw_between_messages", "rank 1 has no disk", 7, 40},
          Case{"leave", "left the job by _exit(0)", 1, 40},
          Case{"return", returned, 7, 40, 1},
          Case{"max", is_pair() ? other_reduction : of_several, 7, 40, odd},
          Case{"types", "the ranks of this communicator differ in call #", 7, 40, odd},
          Case{"hang", is_pair() ? hung : "rank ", 7, 40},
          Case{"max_large", "the ranks of this communicator differ in call #2: rank", 7, 40, odd},
          Case{"hang_large", is_pair() ? hung : "rank ", 7, 40},
          Case{"kill_arena", "SIGKILL (killed)", 137, 40},
          Case{"max_arena", "the ranks of this communicator differ in call #2: rank", 7, 40, odd},
          Case{"hang_arena", is_pair() ? hung : "rank ", 7, 40}};
}

class NcclFaults : public ::testing::TestWithParam<Case> {};
TEST_P(NcclFaults, BlameTheRankAtFault) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_blamed(launch_fault(GetParam().fault), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Ways, NcclFaults, ::testing::ValuesIn(faults()),
                         [](const auto& tested) { return std::string(tested.param.fault); });

class NcclMismatches : public ::testing::TestWithParam<comm_suite::MismatchCase> {};
TEST_P(NcclMismatches, AreReported) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_named(launch_fault(std::string("mismatch:") + GetParam().name),
                         GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(All, NcclMismatches,
                         ::testing::ValuesIn(comm_suite::device_mismatch_cases()), kName);

TEST(NcclMismatches, NoResultOfADifferentReductionIsRead) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_named(launch_fault("read"), {"call #4"});
}

class NcclCaptures : public ::testing::TestWithParam<comm_suite::CaptureCase> {};
TEST_P(NcclCaptures, OfDifferentCallsAreReported) {
  CATENA_NEEDS_NCCL(1);
  mpi_test::expect_named(launch_fault(std::string("capture:") + GetParam().name), GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(All, NcclCaptures, ::testing::ValuesIn(comm_suite::capture_cases()),
                         kName);

}  // namespace
}  // namespace catena
