// A rank of a pipelined job that is killed at a random moment: it is named, all others end, and
// nothing is left. CATENA_TEST_KILLS=40 kills more often than by default.
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "mpi/job.h"

namespace catena {
namespace {

using mpi_test::Outcome;

int number_of_kills() {
  const char* text = std::getenv("CATENA_TEST_KILLS");
  return text ? std::atoi(text) : 4;
}

// A variable that all processes of one job have in their environment.
std::string message_tag(int i) {
  return "CATENA_KILL_TAG_" + std::to_string(getpid()) + "_" + std::to_string(i);
}

int processes_with(const std::string& tag) {
  const Outcome found = mpi_test::shell("", "grep -l -s -a " + tag + "=1 /proc/*/environ; true");
  int count = 0;
  for (size_t at = 0; (at = found.text.find("/environ", at)) != std::string::npos; ++at) ++count;
  return count;
}

class PipelineKills : public ::testing::TestWithParam<const char*> {};

TEST_P(PipelineKills, NameTheRankAndLeaveNothing) {
  std::mt19937 random(20261124);
  for (int i = 0; i < number_of_kills(); ++i) {
    const int rank = int(random() % 4);
    const int wait = int(random() % 300000);
    const std::string tag = message_tag(i);
    const std::string program = std::string(CATENA_TEST_KILL_PROGRAM) + " " + std::to_string(rank) +
                                " " + std::to_string(wait) + GetParam();
    const Outcome o =
        mpi_test::shell("CATENA_DEVICE=cpu " + tag + "=1",
                        std::string(CATENA_TEST_LAUNCHER) + " -n 4 --cpu --timeout 20 " + program);
    const std::string what =
        "rank " + std::to_string(rank) + " after " + std::to_string(wait) + " us";
    mpi_test::expect_blamed(o, {"kill", "SIGKILL (killed)", 137, 25, rank});
    EXPECT_EQ(processes_with(tag), 0) << what << " left processes behind";
    if (HasFailure()) FAIL() << what;
  }
}

// What is killed above is a job that trains.
TEST_P(PipelineKills, WithoutAKillTheJobEndsWell) {
  const Outcome o = mpi_test::shell(
      "CATENA_DEVICE=cpu", std::string(CATENA_TEST_LAUNCHER) + " -n 4 --cpu --timeout 20 " +
                               CATENA_TEST_KILL_PROGRAM + " -1 0" + GetParam());
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(mpi_test::holds(o, "nobody was killed")) << o.text;
}

INSTANTIATE_TEST_SUITE_P(Forms, PipelineKills, ::testing::Values("", " grid"),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "pipeline" : "grid");
                         });

}  // namespace
}  // namespace catena
