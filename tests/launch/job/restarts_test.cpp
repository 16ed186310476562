// Which jobs are started again, as values.
#include "job/restarts.h"

#include <gtest/gtest.h>

#include <csignal>

namespace catena::launch {
namespace {

using Cause = Verdict::Cause;
using Ending = Verdict::Ending;

JobSpec job_of(int restarts, int min_ranks = 0) {
  JobSpec spec;
  spec.ranks = 8;
  spec.hosts = {{"node1", 4}, {"node2", 4}, {"node3", 4}};
  spec.max_restarts = restarts;
  spec.min_ranks = min_ranks;
  return spec;
}

PastAttempt failed_attempt(int exit_code = 3) {
  PastAttempt past;
  past.ranks = 8;
  past.seconds = 60;
  past.verdict.ending = Ending::rank_failed;
  past.verdict.exit_code = exit_code;
  past.verdict.rank = 1;
  past.what = "rank 1 on node1 failed first: exit code " + std::to_string(exit_code);
  return past;
}

PastAttempt unreached_attempt(const std::vector<std::string>& hosts) {
  PastAttempt past = failed_attempt(1);
  past.verdict.ending = Ending::hosts_unreached;
  past.unreached = hosts;
  return past;
}

// An attempt of two ranks, of which rank 1 has ended so.
Attempt attempt_with(const EndReport& end) {
  Attempt attempt;
  attempt.seconds = 1;
  attempt.outcome.ranks.resize(2);
  for (int rank = 0; rank < 2; ++rank) {
    RankOutcome& outcome = attempt.outcome.ranks[static_cast<std::size_t>(rank)];
    outcome.start.emplace().rank = rank;
    outcome.end.emplace().rank = rank;
    outcome.end->end_time = 1000;
  }
  attempt.outcome.ranks[1].end = end;
  attempt.outcome.ranks[1].end->rank = 1;
  attempt.report = make_report(attempt.outcome);
  return attempt;
}

PastAttempt after(const EndReport& end) { return look_back(job_of(3), attempt_with(end)); }

EndReport ended_with(int exit_code) {
  EndReport end;
  end.exit_code = exit_code;
  end.end_time = 10;
  return end;
}

TEST(Restarts, UpToTheNumberThatWasGiven) {
  EXPECT_TRUE(decide_next(job_of(2), {failed_attempt()}, 0).again);
  EXPECT_TRUE(decide_next(job_of(2), {failed_attempt(), failed_attempt()}, 1).again);
  const NextAttempt last = decide_next(job_of(2), {failed_attempt()}, 2);
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.why_not, "--max-restarts 2 is reached");
  const NextAttempt none = decide_next(job_of(0), {failed_attempt()}, 0);
  EXPECT_FALSE(none.again);
  EXPECT_EQ(none.why_not, "") << "nobody has asked for it";
}

TEST(Restarts, NotAfterAGoodEndNorWhenSomebodyStopsTheJob) {
  PastAttempt past = failed_attempt();
  past.asked = SIGTERM;
  EXPECT_EQ(decide_next(job_of(2), {past}, 0).why_not,
            "catena-run was asked to end by " + signal_name(SIGTERM));
  EXPECT_FALSE(decide_next(job_of(2), {past}, 0).again);
  for (const Ending ending : {Ending::well, Ending::stopped}) {
    PastAttempt ended = failed_attempt();
    ended.verdict.ending = ending;
    EXPECT_FALSE(decide_next(job_of(2), {ended}, 0).again);
  }
}

TEST(Restarts, WhatWouldEndTheSameWay) {
  EXPECT_EQ(after(ended_with(3)).hopeless, "");
  EXPECT_EQ(after(ended_with(2)).hopeless, "exit code 2 means wrong usage");
  EndReport end = ended_with(127);
  end.not_started = true;
  EXPECT_EQ(after(end).hopeless, "the program could not be started");
  PastAttempt past = failed_attempt();
  past.hopeless = "a reason";
  EXPECT_FALSE(decide_next(job_of(2), {past}, 0).again);
  EXPECT_EQ(decide_next(job_of(2), {past}, 0).why_not, "a reason");

  Attempt attempt = attempt_with(ended_with(0));
  attempt.outcome.given_up = GivenUp{.why = GivenUp::Why::files_differ};
  EXPECT_NE(look_back(job_of(3), attempt).hopeless, "");
  attempt.outcome.given_up = GivenUp{.why = GivenUp::Why::ranks_missing, .silent = {"node2"}};
  EXPECT_EQ(look_back(job_of(3), attempt).hopeless, "");
  EXPECT_EQ(look_back(job_of(3), attempt).unreached, std::vector<std::string>{"node2"});
  attempt.outcome.given_up.reset();
  attempt.outcome.ended_by_starter = true;
  attempt.outcome.starter_code = 1;
  EXPECT_NE(look_back(job_of(3), attempt).hopeless, "");
}

TEST(Restarts, NotWhenItFailsEarlyAndAlikeTwice) {
  EndReport end = ended_with(3);
  const PastAttempt early = after(end);
  EXPECT_TRUE(early.early);
  end.last_call = "all_reduce #1";
  EXPECT_FALSE(after(end).early) << "it came to a collective";
  Attempt late = attempt_with(ended_with(3));
  late.seconds = 30;
  EXPECT_FALSE(look_back(job_of(3), late).early);

  EXPECT_TRUE(decide_next(job_of(5), {early}, 0).again);
  EXPECT_FALSE(decide_next(job_of(5), {early, early}, 1).again);
  EXPECT_NE(decide_next(job_of(5), {early, early}, 1).why_not, "");
  EXPECT_TRUE(decide_next(job_of(5), {early, after(ended_with(4))}, 1).again);
  EXPECT_TRUE(decide_next(job_of(5), {after(end), early}, 1).again);
}

TEST(Restarts, HostsThatCannotBeReachedAreLeftOut) {
  const NextAttempt next = decide_next(job_of(1, 4), {unreached_attempt({"node2"})}, 1);
  EXPECT_TRUE(next.again) << "this uses none of the restarts";
  EXPECT_EQ(next.left_out, std::vector<std::string>{"node2"});
  EXPECT_EQ(next.hosts, (std::vector<Host>{{"node1", 4}, {"node3", 4}}));
  EXPECT_EQ(next.ranks, 8) << "there are slots enough";
  const NextAttempt fewer = decide_next(job_of(1, 4), {unreached_attempt({"node1", "node2"})}, 0);
  EXPECT_TRUE(fewer.again);
  EXPECT_EQ(fewer.ranks, 4);
  const NextAttempt none = decide_next(job_of(1, 5), {unreached_attempt({"node1", "node2"})}, 0);
  EXPECT_FALSE(none.again);
  EXPECT_EQ(none.why_not, "the hosts that answer have room for 4 ranks, fewer than --min-ranks 5");
  // Without --min-ranks they may be back.
  EXPECT_EQ(decide_next(job_of(1), {unreached_attempt({"node2"})}, 0).hosts, job_of(1).hosts);
}

AllocatedNodes nodes_left(const std::vector<std::string>& left) {
  return {{"n1", "n2", "n3", "n4"}, left, 8};
}

// Slurm has taken a node away, or it fell silent.
TEST(Restarts, NodesOfAnAllocationThatAreGoneAreLeftOut) {
  JobSpec spec = job_of(1, 4);
  spec.hosts.clear();
  AllocatedNodes nodes = nodes_left({"n1", "n3", "n4"});
  PastAttempt hopeless = failed_attempt();
  hopeless.hopeless = "no rank could be started";
  NextAttempt next = decide_next(spec, {hopeless}, 0, &nodes);
  EXPECT_TRUE(next.again) << "on other nodes there is hope";
  EXPECT_EQ(next.ranks, 6);
  EXPECT_EQ(next.nodes, (std::vector<std::string>{"n1", "n3", "n4"}));
  EXPECT_EQ(next.left_out, std::vector<std::string>{"n2"});
  spec.nodes = next.nodes;
  spec.ranks = next.ranks;
  nodes = nodes_left({"n3"});
  next = decide_next(spec, {failed_attempt()}, 0, &nodes);
  EXPECT_FALSE(next.again);
  EXPECT_EQ(next.why_not,
            "the nodes that are left have room for 2 ranks, fewer than --min-ranks 4");
}

TEST(Restarts, NodesOfAnAllocationMayComeBack) {
  JobSpec spec = job_of(2, 4);
  spec.hosts.clear();
  spec.nodes = {"n1", "n3", "n4"};
  spec.ranks = 6;
  AllocatedNodes nodes = nodes_left({"n1", "n3", "n4"});
  NextAttempt next = decide_next(spec, {failed_attempt()}, 0, &nodes);
  EXPECT_TRUE(next.again);
  EXPECT_EQ(next.ranks, 6);
  EXPECT_EQ(next.nodes, spec.nodes);
  EXPECT_TRUE(next.left_out.empty()) << "it is a restart like any other";
  nodes = nodes_left({"n1", "n2", "n3", "n4"});
  next = decide_next(spec, {failed_attempt()}, 0, &nodes);
  EXPECT_EQ(next.ranks, 8);
  EXPECT_TRUE(next.nodes.empty());
  EXPECT_FALSE(decide_next(spec, {failed_attempt()}, 2, &nodes).again);
}

// srun can be silent of all nodes at once.
TEST(Restarts, OneHostIsLost) {
  Attempt attempt = attempt_with(ended_with(0));
  attempt.outcome.hang.emplace().kind = Hang::Kind::host_silent;
  attempt.outcome.hang->host = "n2";
  attempt.outcome.silences = {{"n2", 9}};
  EXPECT_EQ(look_back(job_of(3), attempt).lost, "n2");
  attempt.outcome.silences = {{"n1", 8}, {"n2", 9}};
  EXPECT_EQ(look_back(job_of(3), attempt).lost, "");
}

TEST(Restarts, SlurmMayEndAStepForItsNode) {
  Attempt attempt = attempt_with(ended_with(0));
  attempt.outcome.ranks[1].end.reset();
  attempt.outcome.starter_code = 1;
  attempt.outcome.findings.ended_for = "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS";
  EXPECT_EQ(look_back(job_of(3), attempt).hopeless, "");
  attempt.outcome.findings.ended_for = "TIME LIMIT";
  EXPECT_EQ(look_back(job_of(3), attempt).hopeless, "somebody has stopped it");
}

TEST(Restarts, AllAttemptsAreListed) {
  EXPECT_EQ(describe_attempts({failed_attempt()}), "");
  PastAttempt good;
  good.ranks = 1;
  good.seconds = 2.25;
  EXPECT_EQ(describe_attempts({failed_attempt(), good}),
            "catena-run: 2 attempts\n"
            "  1: 60.0 s, 8 ranks, rank 1 on node1 failed first: exit code 3\n"
            "  2: 2.2 s, 1 rank, ended well\n");
  EXPECT_TRUE(after(ended_with(3)).what.ends_with(" failed first: exit code 3"))
      << after(ended_with(3)).what;
}

}  // namespace
}  // namespace catena::launch
