#include "rank/daemon_end.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/process.h"

namespace catena::launch {
namespace {

// A child that sleeps under a name.
pid_t sleeper(const char* name) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, name);
    sleep(30);
    _exit(0);
  }
  usleep(100000);
  return child;
}

TEST(DaemonEnd, DaemonsAreKnownByTheirNames) {
  for (const auto& [name, is_daemon] :
       {std::pair{"orted", true}, {"prted", true}, {"mpirun", false}, {"orted2", false}}) {
    const pid_t child = sleeper(name);
    EXPECT_EQ(is_daemon_of_mpirun(child), is_daemon) << name;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST(DaemonEnd, AProcessThatDoesNotEndIsKilledLater) {
  const pid_t child = sleeper("orted");
  const double start = monotonic_seconds();
  end_later(child, 1.5);
  EXPECT_LT(monotonic_seconds() - start, 1.4) << "it waited itself";
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_GE(monotonic_seconds() - start, 1.45);
}

TEST(DaemonEnd, NobodyWaitsForAProcessThatHasEnded) {
  const pid_t child = sleeper("orted");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // who waits would become a child of this process
  end_later(child, 0.1);
  EXPECT_EQ(waitpid(-1, nullptr, 0), -1);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace catena::launch
