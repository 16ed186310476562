// What the bar and the plain lines look like, and when they are written.
#include "catena/training/progress.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "environment_scope.h"

namespace catena::training {
namespace {

TEST(FormatDuration, Forms) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(1.0 / 0.0), "?");
}

TEST(FormatBar, ShowsEpochShareRateAndTimeLeft) {
  const Progress p{
      .done = 90000, .total = 300000, .samples_per_second = 10000, .epoch = 2, .epochs = 5};
  EXPECT_EQ(format_line(p), "epoch 2/5  30 %  10000 samples/s  0:21 left");
  const std::string bar = format_bar(p, 66);
  EXPECT_EQ(bar.size(), 66u);
  EXPECT_EQ(bar, "epoch 2/5 [######>.............]  30 %  10000 samples/s  0:21 left");
  EXPECT_EQ(format_line({.done = 5, .total = 5, .epoch = 3, .epochs = 2}), "epoch 2/2 100 %");
  EXPECT_EQ(format_bar({.done = 0, .total = 10}, 40), "[>...............................]   0 %");
  EXPECT_EQ(format_bar({.done = 10, .total = 10}, 20), "[############] 100 %");
}

TEST(FormatBar, NeverWiderThanTheTerminal) {
  const Progress p{.done = 123456789,
                   .total = 300000000,
                   .samples_per_second = 1234567,
                   .epoch = 2,
                   .epochs = 5};
  for (int width = 0; width < 200; ++width) EXPECT_LE(format_bar(p, width).size(), size_t(width));
}

TEST(ProgressBar, DrawsOnTerminalsAndRemovesTheBar) {
  std::ostringstream out;
  ProgressBar bar(1000, 2, {.terminal = true, .silent = false, .out = &out, .bar_interval = 0});
  bar.update(0, 1);
  EXPECT_EQ(out.str(), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  bar.update(100, 1);
  EXPECT_EQ(out.str().front(), '\r');
  EXPECT_NE(out.str().find("epoch 1/2"), std::string::npos);
  EXPECT_NE(out.str().find("10 %"), std::string::npos);
  EXPECT_GT(bar.progress().samples_per_second, 0);
  EXPECT_LE(bar.progress().samples_per_second, 100 / 0.02);
  bar.clear();
  EXPECT_TRUE(out.str().ends_with("\r\x1b[K"));
  const std::string before = out.str();
  bar.clear();
  EXPECT_EQ(out.str(), before);
}

TEST(ProgressBar, PlainLinesOtherwise) {
  std::ostringstream out;
  ProgressBar bar(1000, 1, {.terminal = false, .silent = false, .out = &out, .line_interval = 0});
  bar.update(500, 1);  // resumed: not counted into the rate
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  bar.update(510, 1);
  EXPECT_LE(bar.progress().samples_per_second, 10 / 0.01);
  EXPECT_EQ(out.str().find('\r'), std::string::npos);
  EXPECT_TRUE(out.str().starts_with("epoch 1/1  51 %")) << out.str();
  EXPECT_TRUE(out.str().ends_with("left\n"));
}

TEST(ProgressBar, QuietWhenSilentOrEarly) {
  std::ostringstream out;
  ProgressBar silent(1000, 1, {.terminal = true, .silent = true, .out = &out, .bar_interval = 0});
  ProgressBar early(1000, 1,
                    {.terminal = false, .silent = false, .out = &out, .line_interval = 100});
  for (int i = 0; i < 10; ++i) {
    silent.update(i, 1);
    early.update(i, 1);
  }
  EXPECT_EQ(out.str(), "");
}

TEST(RankEnvironment, OnlyRankZeroDraws) {
  EnvironmentScope environment("CATENA_LAUNCHED", "1");
  environment.set("CATENA_RANK", "0");
  EXPECT_TRUE(prints());
  EXPECT_FALSE(draws_on_terminal());  // catena-run's own output is no terminal
  environment.set("CATENA_TERMINAL", "1");
  EXPECT_TRUE(draws_on_terminal());
  environment.set("CATENA_RANK", "1");
  EXPECT_FALSE(prints());
  EXPECT_FALSE(draws_on_terminal());
  environment.set("CATENA_RANK", {});
  environment.set("OMPI_COMM_WORLD_RANK", "1");
  EXPECT_FALSE(prints()) << "started by mpirun itself";
}

TEST(RankEnvironment, WidthFromColumns) {
  const EnvironmentScope environment("COLUMNS", "123");
  EXPECT_EQ(terminal_width(), 123);
}

}  // namespace
}  // namespace catena::training
