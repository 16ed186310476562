#include "chatter.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

const std::string kRule = std::string(74, '-') + "\n";

struct Heard {
  std::string lines;
  MpirunChatter chatter{[this](std::string_view line) { lines.append(line).append("\n"); }};
};

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
