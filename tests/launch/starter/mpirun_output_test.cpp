#include "starter/mpirun_output.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

const std::string kRule = std::string(74, '-') + "\n";

struct Heard {
  std::string lines;
  MpirunOutput output{[this](std::string_view line) { lines.append(line).append("\n"); }};
};

StarterFindings findings_of(const std::string& text) {
  MpirunOutput output([](std::string_view) {}, {"h1", "h12.lab.org", "10.0.0.7"});
  output.feed(text);
  output.finish();
  return output.findings();
}

TEST(MpirunOutputTest, NoticesOfTheEndAreWithheld) {
  Heard heard;
  heard.output.feed(kRule +
                    "Primary job  terminated normally, but 1 process returned\n"
                    "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
                    kRule + "mpirun: Forwarding signal 14 to job\n");
  heard.output.finish();
  EXPECT_EQ(heard.lines, "");
  EXPECT_NE(heard.output.withheld().find("Per user-direction"), std::string::npos);
}

TEST(MpirunOutputTest, OtherMessagesPass) {
  Heard heard;
  heard.output.feed("ssh: connect to host h2 port 22: No route to host\n" + kRule +
                    "There are not enough slots available in the system\n\nto satisfy it\n" +
                    kRule);
  heard.output.feed(kRule + "cut off\nno line end");
  heard.output.finish();
  EXPECT_EQ(heard.lines,
            "ssh: connect to host h2 port 22: No route to host\n"
            "There are not enough slots available in the system\n\nto satisfy it\n"
            "cut off\nno line end\n");
}

TEST(MpirunOutputTest, LearnsThatMpiInitFailed) {
  EXPECT_FALSE(findings_of("[h1:7] *** An error occurred in MPI_Allreduce\n").mpi_init_failed);
  EXPECT_TRUE(findings_of("[h1:7] *** An error occurred in MPI_Init_thread\n").mpi_init_failed);
  EXPECT_TRUE(findings_of(kRule +
                          "MPI_INIT has failed because at least one MPI process is unreachable\n"
                          "from another.\n" +
                          kRule)
                  .mpi_init_failed);
  MpirunOutput output([](std::string_view) {});
  output.see_error_of_rank(1, "the card cannot be selected\n");
  EXPECT_FALSE(output.findings().mpi_init_failed);
  output.see_error_of_rank(1, "[h1:7] PML ucx cannot be selected\n");
  EXPECT_TRUE(output.findings().mpi_init_failed);
}

TEST(MpirunOutputTest, LearnsOfAborts) {
  Heard heard;
  heard.output.feed(kRule +
                    "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n"
                    "with errorcode 77.\n" +
                    kRule);
  EXPECT_EQ(heard.output.findings().abort_rank, 3);
  EXPECT_EQ(heard.output.findings().abort_code, 77);
  EXPECT_EQ(findings_of(kRule + "MPI_ABORT was invoked on rank 3\n" + kRule).abort_code, 1);
}

TEST(MpirunOutputTest, LearnsWhichHostDidNotAnswer) {
  StarterFindings findings = findings_of(
      "Warning: Permanently added 'h1' to the list of known hosts.\n"
      "ssh: Could not resolve hostname h12: Name or service not known\r\n");
  EXPECT_EQ(findings.unreached_host, "h12.lab.org");
  EXPECT_EQ(findings.unreached_reason,
            "ssh: Could not resolve hostname h12: Name or service not known");
  EXPECT_EQ(findings_of("ssh: connect to host 10.0.0.7 port 22: No route to host\n").unreached_host,
            "10.0.0.7");
  findings = findings_of("Host key verification failed.\n");
  EXPECT_EQ(findings.unreached_host, "");
  EXPECT_EQ(findings.unreached_reason, "Host key verification failed.");
  findings =
      findings_of("root@h1: Permission denied (publickey).\nConnection closed by h12 port 22\n");
  EXPECT_EQ(findings.unreached_host, "h1");
  EXPECT_FALSE(findings.no_connection);
  EXPECT_TRUE(findings_of(kRule +
                          "The value of the MCA parameter \"plm_rsh_agent\" was set to a path\n"
                          "that could not be found:\n" +
                          kRule)
                  .no_connection);
}

TEST(MpirunOutputTest, LearnsOfLostDaemonsAndKeepsTheirAdviceBack) {
  Heard heard;
  heard.output.feed(kRule +
                    "ORTE has lost communication with a remote daemon.\n\n"
                    "  HNP daemon   : [[1,0],0] on node nodea\n"
                    "  Remote daemon: [[1,0],1] on node nodeb\n\nThis is usually ...\n" +
                    kRule + kRule +
                    "ORTE was unable to reliably start one or more daemons.\n"
                    "*  compilation of the orted with dynamic libraries ...\n" +
                    kRule + kRule +
                    "mpirun was unable to launch the specified application as it could not access\n"
                    "or execute an executable:\n\nExecutable: /x/catena-run\nNode: nodec\n\n"
                    "while attempting to start process rank 2.\n" +
                    kRule + "2 total processes failed to start\n");
  EXPECT_EQ(heard.output.findings().lost_host, "nodeb");
  EXPECT_EQ(heard.output.findings().broken_host, "nodec");
  EXPECT_TRUE(heard.output.findings().daemons_failed);
  EXPECT_EQ(heard.lines, "");
}

TEST(MpirunOutputTest, KnowsWhatMayPass) {
  EXPECT_TRUE(
      findings_of("ssh: connect to host h12 port 22: Connection refused\n").unreached_for_now);
  EXPECT_TRUE(
      findings_of("ssh: connect to host h12 port 22: No route to host\n").unreached_for_now);
  for (const char* line :
       {"ssh: Could not resolve hostname h12: Name or service not known\n",
        "root@h12: Permission denied (publickey).\n", "Host key verification failed.\n"})
    EXPECT_FALSE(findings_of(line).unreached_for_now) << line;
}

TEST(MpirunOutputTest, LearnsOfKilledRankProcesses) {
  Heard heard;
  heard.output.feed(
      kRule +
      "mpirun noticed that process rank 1 with PID 0 on node h2 exited on signal 9 (Killed).\n" +
      kRule);
  EXPECT_EQ(heard.output.findings().killed_rank, 1);
  EXPECT_EQ(heard.output.findings().killed_signal, 9);
  EXPECT_EQ(heard.output.findings().killed_host, "h2");
}

}  // namespace
}  // namespace catena::launch
