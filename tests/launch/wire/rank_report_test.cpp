// What ranks report, there and back.
#include "wire/rank_report.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

TEST(RankReport, ComesBackWhole) {
  EndReport end;
  end.rank = 5;
  end.host = "h";
  end.exit_code = 3;
  end.signal = 11;
  end.core_dumped = true;
  end.not_started = true;
  end.stop_time = 12;
  end.end_time = 1234567890123456789u;
  end.error = "tab\tline\nend%";
  end.culprit_rank = 2;
  end.phase = comm::Phase::joining;
  end.last_lines = "a\nb\n\xff";
  end.shared_memory = "too small";
  const auto again = std::get<EndReport>(parse_rank_report(to_line(end)));
  EXPECT_EQ(to_line(again), to_line(end));
  EXPECT_EQ(again.error, end.error);
  EXPECT_EQ(again.end_time, end.end_time);
  EXPECT_EQ(again.culprit_rank, 2);
  EXPECT_EQ(again.phase, end.phase);
  EXPECT_EQ(again.last_lines, end.last_lines);
  EXPECT_EQ(again.shared_memory, end.shared_memory);
  EXPECT_TRUE(again.core_dumped && again.not_started);
}

TEST(RankReport, OfAStart) {
  StartReport start;
  start.rank = 0;
  start.pid = 77;
  start.started = 1234567890123;
  start.board = "/proc/1/fd/3";
  start.digests = {{"a b=c", "9-1"}, {"libcatena.so", "5-5"}};
  const auto again = std::get<StartReport>(parse_rank_report(to_line(start)));
  EXPECT_EQ(to_line(again), to_line(start));
  EXPECT_EQ(again.rank, 0);
  EXPECT_EQ(again.started, start.started);
  EXPECT_EQ(again.digests, start.digests);
}

TEST(RankReport, OfAState) {
  StateReport state;
  state.rank = 9;
  state.host = "node2";
  state.pid = 77;
  state.state = "in all_reduce #3\tsum";
  state.communicator = 0xfedcba9876543210u;
  state.calls = 3;
  state.waits = true;
  state.waited = 2.5;
  state.updates = 12;
  state.since_update = 0.25;
  state.step = 0.125;
  state.own_step = 0.0625;
  const RankReport parsed = parse_rank_report(to_line(state));
  EXPECT_TRUE(is_sign_of_life(parsed));
  const auto again = std::get<StateReport>(parsed);
  EXPECT_EQ(to_line(again), to_line(state));
  EXPECT_EQ(again.state, state.state);
  EXPECT_EQ(again.communicator, state.communicator);
  EXPECT_EQ(again.own_step, state.own_step);
}

TEST(RankReport, Others) {
  EXPECT_TRUE(std::holds_alternative<AliveReport>(parse_rank_report(to_line(AliveReport{}))));
  for (const char* line : {"", "ending\trank=1", "alive!", "noise"})
    EXPECT_TRUE(std::holds_alternative<std::monostate>(parse_rank_report(line))) << line;
}

}  // namespace
}  // namespace catena::launch
