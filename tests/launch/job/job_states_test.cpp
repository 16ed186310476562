#include "job/job_states.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error_text.h"
#include "status/status_board.h"

namespace catena::launch {
namespace {

StateReport state_of_rank(int rank, const std::string& text) {
  StateReport state;
  state.rank = rank;
  state.host = "node2";
  state.pid = 4000 + rank;
  state.state = text;
  state.updates = 12;
  return state;
}

TEST(JobStates, RanksOfAllHosts) {
  const comm::StatusBoard board = comm::StatusBoard::create_private(2);
  board.slot(0).set_identity(0, 77, "node1");
  board.slot(0).set_phase(comm::Phase::finished);
  JobSpec spec;
  spec.id = "3f9a01c7";
  spec.ranks = 3;
  spec.remote = true;
  EXPECT_EQ(describe_ranks(spec, &board, {state_of_rank(2, "computing for 1.0 s")}),
            "  rank 0 on node1, process 77: ended\n"
            "  rank 2 on node2, process 4002, 12 updates: computing for 1.0 s\n"
            "  rank 1: on other hosts, or not started; there, or where catena-run was started, "
            "catena-run --status 3f9a01c7 shows them\n"
            "  updates: 12, the last one 0.0 s ago\n");
  expect_contains(
      describe_ranks(spec, &board, {aged(state_of_rank(2, "computing for 1.0 s"), 1.5)}),
      {"  rank 2 on node2, process 4002, 12 updates, seen 1.5 s ago: computing for 1.0 s\n"});
  spec.remote = false;
  EXPECT_EQ(describe_ranks(spec, nullptr, {}), "  ranks 0-2: not started\n");
}

// Another process reads what this one has heard.
TEST(JobStates, ArePublished) {
  EXPECT_TRUE(published_states(getpid()).empty());
  OtherStates others;
  others.note(state_of_rank(3, "in all_reduce #2\tsum"));
  others.note(state_of_rank(4, "too soon after the first to be published at once"));
  EXPECT_EQ(others.all().size(), 2u);
  const int launcher = getpid();
  const pid_t reader = fork();
  if (reader == 0) {
    const std::vector<StateReport> seen = published_states(launcher);
    const bool right = seen.size() == 1 && seen[0].rank == 3 && seen[0].host == "node2" &&
                       seen[0].state == "in all_reduce #2\tsum" && seen[0].updates == 12;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
  others.publish_late();
  EXPECT_EQ(published_states(launcher).size(), 2u);
  others.note_end(3, false);
  const std::vector<StateReport> seen = published_states(launcher);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].state, "failed");
  EXPECT_TRUE(seen[0].ended);
  EXPECT_FALSE(seen[1].ended);
}

// Their times go on, here and for other processes.
TEST(JobStates, GrowOld) {
  StateReport state = state_of_rank(3, "in all_reduce #2 sum, since 2.0 s");
  state.waits = true;
  state.waited = 2;
  state.since_update = 4;
  OtherStates others;
  others.note(state);
  StateReport ended = state_of_rank(4, "computing");
  others.note(ended);
  others.note_end(4, true);
  usleep(200000);
  for (const auto& states : {others.all(), published_states(getpid())}) {
    ASSERT_EQ(states.size(), 2u);
    EXPECT_GE(states[0].age, 0.2);
    EXPECT_GE(states[0].waited, 2.2);
    EXPECT_GE(states[0].since_update, 4.2);
    EXPECT_EQ(states[0].state, state.state);
    EXPECT_EQ(states[1].age, 0) << "it has ended for good";
  }
}

}  // namespace
}  // namespace catena::launch
