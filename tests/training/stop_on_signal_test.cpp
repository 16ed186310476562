#include "catena/training/stop_on_signal.h"

#include <gtest/gtest.h>

#include <csignal>

#include "error_text.h"
#include "temp_folder.h"
#include "training/small_run.h"

namespace catena::training {
namespace {

struct StoppableRun : SmallRun {
  StopOnSignal& stop;

  explicit StoppableRun(TrainerOptions options)
      : SmallRun(options),
        stop(trainer.extend(
            std::make_unique<StopOnSignal>(nullptr, std::vector<int>{SIGUSR1, SIGUSR2}))) {}
};

// A job that is requeued ends where one that was left alone does.
TEST(StopOnSignal, TheNextRunGoesOn) {
  const TempFolder folder;
  const TrainerOptions options{.iterations = 9, .out = folder.path()};
  std::vector<double> expected;
  {
    StoppableRun whole({.iterations = 9});
    whole.trainer.run();
    EXPECT_EQ(whole.stop.signal(), 0);
    expected = numbers_of(whole.model);
  }
  {
    StoppableRun first(options);
    first.trainer.extend({.iterations = 4}, [](Trainer&) { raise(SIGUSR1); });
    first.trainer.run();
    EXPECT_EQ(first.stop.signal(), SIGUSR1);
    // The extension that raised it runs after this one: it is seen one update later.
    EXPECT_EQ(first.trainer.iteration(), 5);
  }
  StoppableRun second(options);
  ASSERT_TRUE(second.trainer.has_checkpoint());
  second.trainer.resume();
  EXPECT_EQ(second.trainer.iteration(), 5);
  second.trainer.run();
  EXPECT_EQ(second.stop.signal(), 0);
  EXPECT_EQ(second.trainer.iteration(), 9);
  EXPECT_EQ(numbers_of(second.model), expected);
}

TEST(StopOnSignal, BeforeTheFirstUpdate) {
  StoppableRun run({.iterations = 9});
  raise(SIGUSR2);
  run.trainer.run();
  EXPECT_EQ(run.stop.signal(), SIGUSR2);
  EXPECT_EQ(run.trainer.iteration(), 0);
  expect_contains(run.text.str(), {"stopped it before another update"});
}

TEST(StopOnSignal, Errors) {
  expect_contains(error_of<ValueError>([] { StopOnSignal(nullptr, {SIGUSR1}, 0); }),
                  {"StopOnSignal: every is 0, expected a number of updates, 1 or more"});
}

}  // namespace
}  // namespace catena::training
