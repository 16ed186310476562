#include "starter/mpirun_output.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

const std::string kRule = std::string(74, '-') + "\n";

struct Heard {
  std::string lines;
  MpirunChatter chatter{[this](std::string_view line) { lines.append(line).append("\n"); }};
};

MpirunHints hints_of(const std::string& text) {
  MpirunChatter chatter([](std::string_view) {}, {"h1", "h12.lab.org", "10.0.0.7"});
  chatter.feed(text);
  chatter.finish();
  return chatter.hints();
}

TEST(Chatter, NoticesOfTheEndAreWithheld) {
  Heard heard;
  heard.chatter.feed(kRule +
                     "Primary job  terminated normally, but 1 process returned\n"
                     "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
                     kRule + "mpirun: Forwarding signal 14 to job\n");
  heard.chatter.finish();
  EXPECT_EQ(heard.lines, "");
  EXPECT_NE(heard.chatter.withheld().find("Per user-direction"), std::string::npos);
}

TEST(Chatter, OtherMessagesPass) {
  Heard heard;
  heard.chatter.feed("ssh: connect to host h2 port 22: No route to host\n" + kRule +
                     "There are not enough slots available in the system\n\nto satisfy it\n" +
                     kRule);
  heard.chatter.feed("no line end");
  heard.chatter.finish();
  EXPECT_EQ(heard.lines,
            "ssh: connect to host h2 port 22: No route to host\n"
            "There are not enough slots available in the system\n\nto satisfy it\n"
            "no line end\n");
}

TEST(Chatter, LearnsOfAborts) {
  Heard heard;
  heard.chatter.feed(kRule +
                     "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n"
                     "with errorcode 77.\n" +
                     kRule);
  EXPECT_EQ(heard.chatter.hints().abort_rank, 3);
  EXPECT_EQ(heard.chatter.hints().abort_code, 77);
}

TEST(Chatter, LearnsWhichHostDidNotAnswer) {
  MpirunHints hints = hints_of(
      "Warning: Permanently added 'h1' to the list of known hosts.\n"
      "ssh: Could not resolve hostname h12: Name or service not known\r\n");
  EXPECT_EQ(hints.unreached_host, "h12.lab.org");
  EXPECT_EQ(hints.unreached_reason,
            "ssh: Could not resolve hostname h12: Name or service not known");
  EXPECT_EQ(hints_of("ssh: connect to host 10.0.0.7 port 22: No route to host\n").unreached_host,
            "10.0.0.7");
  hints = hints_of("Host key verification failed.\n");
  EXPECT_EQ(hints.unreached_host, "");
  EXPECT_EQ(hints.unreached_reason, "Host key verification failed.");
  hints = hints_of("root@h1: Permission denied (publickey).\nConnection closed by h12 port 22\n");
  EXPECT_EQ(hints.unreached_host, "h1");
  EXPECT_FALSE(hints.no_ssh);
  EXPECT_TRUE(hints_of(kRule +
                       "The value of the MCA parameter \"plm_rsh_agent\" was set to a path\n"
                       "that could not be found:\n" +
                       kRule)
                  .no_ssh);
}

TEST(Chatter, LearnsOfLostDaemonsAndKeepsTheirAdviceBack) {
  Heard heard;
  heard.chatter.feed(
      kRule +
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
  EXPECT_EQ(heard.chatter.hints().lost_host, "nodeb");
  EXPECT_EQ(heard.chatter.hints().broken_host, "nodec");
  EXPECT_TRUE(heard.chatter.hints().daemons_failed);
  EXPECT_EQ(heard.lines, "");
}

TEST(Chatter, KnowsWhatMayPass) {
  EXPECT_TRUE(hints_of("ssh: connect to host h12 port 22: Connection refused\n").unreached_for_now);
  EXPECT_TRUE(hints_of("ssh: connect to host h12 port 22: No route to host\n").unreached_for_now);
  for (const char* line :
       {"ssh: Could not resolve hostname h12: Name or service not known\n",
        "root@h12: Permission denied (publickey).\n", "Host key verification failed.\n"})
    EXPECT_FALSE(hints_of(line).unreached_for_now) << line;
}

TEST(Chatter, LearnsOfKilledRankProcesses) {
  Heard heard;
  heard.chatter.feed(
      kRule +
      "mpirun noticed that process rank 1 with PID 0 on node h2 exited on signal 9 (Killed).\n" +
      kRule);
  EXPECT_EQ(heard.chatter.hints().killed_rank, 1);
  EXPECT_EQ(heard.chatter.hints().killed_signal, 9);
  EXPECT_EQ(heard.chatter.hints().killed_host, "h2");
}

}  // namespace
}  // namespace catena::launch
