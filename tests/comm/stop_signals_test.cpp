#include "catena/comm/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "catena/comm/factory.h"
#include "error_text.h"

namespace catena::comm {
namespace {

int before = 0;

TEST(StopSignals, NotesWhatWouldEndTheProcess) {
  std::signal(SIGUSR1, [](int) { ++before; });
  {
    const StopSignals stop({SIGUSR1, SIGUSR2});
    EXPECT_EQ(stop.received(), 0);
    raise(SIGUSR1);
    EXPECT_EQ(stop.received(), SIGUSR1);
    raise(SIGUSR2);
    EXPECT_EQ(stop.received(), SIGUSR2);
    EXPECT_EQ(before, 0);
  }
  raise(SIGUSR1);
  EXPECT_EQ(before, 1) << "the handler from before is back";
  std::signal(SIGUSR1, SIG_DFL);
  const StopSignals later({SIGUSR1});
  EXPECT_EQ(later.received(), 0) << "each object begins anew";
}

TEST(StopSignals, OneRankIsEnough) {
  const StopSignals stop({SIGUSR1});
  run_threads(3, [&](Communicator& comm) { EXPECT_EQ(stop.received(comm), 0); });
  raise(SIGUSR1);
  run_threads(3, [&](Communicator& comm) { EXPECT_EQ(stop.received(comm), SIGUSR1); });
}

// As of a rank that another one's signal has stopped before its own two came.
TEST(StopSignals, ThoseThatComeLateDoNothing) {
  {
    const StopSignals stop({SIGUSR1, SIGUSR2});
    raise(SIGUSR1);
    run_threads(2, [&](Communicator& comm) { EXPECT_EQ(stop.received(comm), SIGUSR1); });
    raise(SIGUSR2);  // so that SIGUSR1 is not the last one of this process
  }
  raise(SIGUSR1);
  raise(SIGUSR1);
  EXPECT_EXIT(raise(SIGUSR1), ::testing::KilledBySignal(SIGUSR1), "");
}

TEST(StopSignals, TheSecondOfTwoMayComeLate) {
  {
    const StopSignals stop({SIGUSR1});
    raise(SIGUSR1);
    run_threads(2, [&](Communicator& comm) { EXPECT_EQ(stop.received(comm), SIGUSR1); });
  }
  raise(SIGUSR1);
  EXPECT_EXIT(raise(SIGUSR1), ::testing::KilledBySignal(SIGUSR1), "");
}

TEST(StopSignals, NoneIsExpectedAfterTwo) {
  {
    const StopSignals stop({SIGUSR1});
    raise(SIGUSR1);
    raise(SIGUSR1);
    run_threads(2, [&](Communicator& comm) { EXPECT_EQ(stop.received(comm), SIGUSR1); });
  }
  EXPECT_EXIT(raise(SIGUSR1), ::testing::KilledBySignal(SIGUSR1), "");
}

TEST(StopSignals, Errors) {
  expect_contains(error_of<ValueError>([] {
                    StopSignals({SIGUSR1, SIGKILL});
                  }),
                  {"StopSignals: signal 9 cannot be taken"});
  const StopSignals stop;
  expect_contains(error_of<ValueError>([] { StopSignals({SIGUSR2}); }),
                  {"StopSignals: there is another object"});
}

}  // namespace
}  // namespace catena::comm
