// The texts are those of Slurm 22.05.
#include "starter/srun_output.h"

#include <gtest/gtest.h>

#include <csignal>

namespace catena::launch {
namespace {

struct Read {
  explicit Read(const std::string& text, std::size_t piece = 7) {
    SrunOutput output([this](std::string_view line) { shown.append(line).append("\n"); });
    for (std::size_t at = 0; at < text.size(); at += piece) output.feed(text.substr(at, piece));
    output.finish();
    findings = output.findings();
    withheld = output.withheld();
  }
  std::string shown, withheld;
  StarterFindings findings;
};

TEST(SrunOutputTest, TheFirstTaskThatASignalEnded) {
  const Read read(
      "srun: error: n3: task 5: Killed\n"
      "srun: launch/slurm: _step_signal: Terminating StepId=5.4\n"
      "srun: error: n2: task 4: Terminated\n"
      "slurmstepd-n1: error: *** STEP 5.4 ON n1 CANCELLED AT 2026-11-24T12:12:39 ***\n"
      "srun: error: n1: tasks 0-3: Killed\n"
      "srun: Force Terminated StepId=5.4\n");
  ASSERT_TRUE(read.findings.killed_rank);
  EXPECT_EQ(*read.findings.killed_rank, 5);
  EXPECT_EQ(read.findings.killed_signal, SIGKILL);
  EXPECT_EQ(read.findings.killed_host, "n3");
  EXPECT_EQ(read.findings.ended_for, "");
  EXPECT_EQ(read.shown, "");
  EXPECT_NE(read.withheld.find("task 5: Killed"), std::string::npos);
}

TEST(SrunOutputTest, SignalsByTheirDescriptions) {
  EXPECT_EQ(
      Read("srun: error: n1: task 1: Segmentation fault (core dumped)\n").findings.killed_signal,
      SIGSEGV);
  EXPECT_EQ(Read("srun: error: n1: task 1: Aborted").findings.killed_signal, SIGABRT);
  EXPECT_FALSE(Read("srun: error: n1: task 1: Exited with exit code 7\n").findings.killed_rank);
}

// Nobody else knows it.
TEST(SrunOutputTest, LackOfMemoryIsShown) {
  const std::string text = "srun: error: n2: task 3: Out Of Memory\n";
  const Read read(text);
  EXPECT_EQ(read.findings.killed_rank, 3);
  EXPECT_EQ(read.findings.killed_signal, SIGKILL);
  EXPECT_EQ(read.shown, text);
}

TEST(SrunOutputTest, TasksThatSlurmEndedAreNotToBlame) {
  const Read read(
      "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
      "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-24T12:12:17 DUE TO TIME LIMIT "
      "***\n"
      "srun: error: n2: task 1: Killed\n");
  EXPECT_FALSE(read.findings.killed_rank);
  EXPECT_EQ(read.findings.ended_for, "TIME LIMIT");
  EXPECT_FALSE(Read("srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
                    "srun: error: n2: task 1: Terminated\n")
                   .findings.killed_rank);
}

TEST(SrunOutputTest, CancelledStep) {
  const std::string cancelled = "slurmstepd-n1: error: *** STEP 4.0 ON n1 CANCELLED AT 2026 ***\n";
  EXPECT_EQ(Read("srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n" +
                 cancelled + "srun: error: n2: task 3: Killed\n")
                .findings.ended_for,
            "the step was cancelled");
  const Read race(
      "srun: error: n1: task 0: Killed\nsrun: launch/slurm: _step_signal: Terminating "
      "StepId=4.0\n" +
      cancelled + "srun: error: n2: tasks 1-3: Killed\n");
  EXPECT_EQ(race.findings.ended_for, "the step was cancelled");
  EXPECT_FALSE(race.findings.killed_rank);
  EXPECT_EQ(
      Read("srun: error: n2: task 3: Exited with exit code 1\n" + cancelled).findings.ended_for, "")
      << "a consequence";
  EXPECT_EQ(Read("srun: error: n1: task 0: Killed\n" + cancelled).findings.ended_for, "")
      << "of the only task that is known to have ended";
  EXPECT_EQ(Read("srun: forcing job termination\n" + cancelled).findings.ended_for, "")
      << "by catena-run itself";
}

// The text comes in pieces, and other ranks say other things.
TEST(SrunOutputTest, AbortOfARank) {
  SrunOutput output([](std::string_view) {});
  const std::string text =
      "-----\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_SELF\nwith errorcode 71.\n";
  for (std::size_t at = 0; at < text.size(); at += 3) {
    output.see_error_of_rank(5, text.substr(at, 3));
    output.see_error_of_rank(2, "with errorcode 3.\n");
  }
  EXPECT_EQ(output.findings().abort_rank, 5);
  EXPECT_EQ(output.findings().abort_code, 71);
  SrunOutput mpich([](std::string_view) {});
  mpich.see_error_of_rank(
      1,
      "Abort(7) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) - "
      "process 1\n");
  EXPECT_EQ(mpich.findings().abort_rank, 1);
  EXPECT_EQ(mpich.findings().abort_code, 7);
}

TEST(SrunOutputTest, LostNode) {
  const Read read("srun: error: Node failure on n2\n");
  EXPECT_EQ(read.findings.lost_host, "n2");
  EXPECT_TRUE(read.findings.daemons_failed);
  EXPECT_EQ(read.shown, "srun: error: Node failure on n2\n");
}

TEST(SrunOutputTest, MissingLauncher) {
  EXPECT_EQ(Read("slurmstepd-n2: error: execve(): /x/catena-run: No such file or directory\n"
                 "srun: error: n2: task 1: Exited with exit code 2\n")
                .findings.broken_host,
            "n2");
  EXPECT_EQ(Read("slurmstepd: error: execve(): /x/catena-run: Permission denied\n"
                 "srun: error: n3: tasks 1-2: Exited with exit code 13\n")
                .findings.broken_host,
            "n3");
}

TEST(SrunOutputTest, OtherLinesAreShown) {
  const std::string text =
      "srun: error: Unable to create step for job 5: More processors requested than permitted\n"
      "srun: Job 5 step creation temporarily disabled, retrying (Requested nodes are busy)\n";
  const Read read(text);
  EXPECT_EQ(read.shown, text);
  EXPECT_EQ(read.withheld, "");
  const Read binding("srun: cluster configuration lacks support for cpu binding\n");
  EXPECT_EQ(binding.shown + binding.withheld, "") << "none was asked for";
}

}  // namespace
}  // namespace catena::launch
