// catena-run --trace with real ranks: what is in the file, and what is left of jobs that fail.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "mpi/job.h"
#include "temp_folder.h"

namespace catena {
namespace {

using Json = nlohmann::json;
using mpi_test::holds;
using mpi_test::Outcome;

// A job of CPU ranks that was traced.
class TracedJob {
 public:
  TracedJob(int ranks, const std::string& fault = "", const std::string& options = "") {
    outcome = mpi_test::shell("", std::string(CATENA_TEST_LAUNCHER) + " -n " +
                                      std::to_string(ranks) + " --cpu --trace " + file + " " +
                                      options + " " + CATENA_TEST_TRACE_PROGRAM + " " + fault);
    trace = Json::parse(read_file(file), nullptr, false);
    if (trace.is_discarded())
      ADD_FAILURE() << "the trace is no JSON: " << outcome.text;
    else
      for (const Json& event : trace.at("traceEvents"))
        if (event.at("ph") == "X") events.push_back(event);
  }

  // Of one rank, with this name.
  std::vector<Json> of(int rank, const std::string& name) const {
    std::vector<Json> found;
    for (const Json& event : events)
      if (event.at("pid") == rank && event.at("name") == name) found.push_back(event);
    return found;
  }
  std::vector<Json> of_kind(int rank, const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& event : events)
      if (event.at("pid") == rank && event.at("cat") == kind) found.push_back(event);
    return found;
  }

  TempFolder folder;
  std::string file = folder / "trace.json";
  Outcome outcome;
  Json trace;
  std::vector<Json> events;
};

double begin_of(const Json& event) { return event.at("ts"); }
double end_of(const Json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

class Traces : public ::testing::TestWithParam<int> {};

TEST_P(Traces, HoldAllRanks) {
  const int ranks = GetParam();
  const TracedJob job(ranks);
  ASSERT_EQ(job.outcome.code, 0) << job.outcome.text;
  EXPECT_EQ(job.folder.entries(), 1) << "the parts are gone";
  EXPECT_TRUE(holds(job.outcome, std::to_string(ranks) + " ranks and 2 steps, clocks aligned to"))
      << job.outcome.text;
  EXPECT_TRUE(holds(job.outcome, "  rank   median step  communication, exposed"))
      << job.outcome.text;
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(job.of(rank, "my step").size(), 3u);
    EXPECT_EQ(job.of(rank, "next batch").size(), 3u);
    EXPECT_EQ(job.of_kind(rank, "update").size(), 3u);
    EXPECT_EQ(job.of_kind(rank, "step").size(), 2u);
    EXPECT_EQ(job.of(rank, "backward of Linear").size(), 3u * 5) << "l2 is used twice";
    EXPECT_EQ(job.of(rank, "SoftmaxCrossEntropy").size(), 3u * 2) << "and what it calls";
    const std::vector<Json> reductions = job.of(rank, "group");
    ASSERT_EQ(reductions.size(), 3u) << "the buckets of a step";
    for (const Json& call : reductions) {
      EXPECT_EQ(call.at("cat"), "communication");
      EXPECT_GT(call.at("args").at("bytes"), 0);
    }
  }
}

// A reduction ends on no rank before all have begun it: by the clock that all share.
TEST_P(Traces, HaveOneClock) {
  const int ranks = GetParam();
  const TracedJob job(ranks);
  const Json& processes = job.trace.at("otherData").at("processes");
  double error = 0;  // microseconds
  for (const Json& process : processes)
    error = std::max(error, process.at("clock_error_ns").get<double>() / 1000);
  EXPECT_EQ(processes.size(), size_t(ranks));
  const size_t calls = job.of(0, "group").size();
  for (size_t i = 0; i < calls; ++i) {
    double last_begin = 0, first_end = 1e30;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<Json> own = job.of(rank, "group");
      ASSERT_EQ(own.size(), calls);
      last_begin = std::max(last_begin, begin_of(own[i]));
      first_end = std::min(first_end, end_of(own[i]));
    }
    EXPECT_LE(last_begin, first_end + 2 * error + 1) << "call " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Traces, ::testing::Values(2, 3));

// The number behind `before` in what the job printed; -1: there is none.
double number_behind(const Outcome& outcome, const std::string& before) {
  const size_t at = outcome.text.find(before);
  return at == std::string::npos ? -1 : std::atof(outcome.text.c_str() + at + before.size());
}

// By how much the idle part of a rank's shortest step differs from what the simulation of the
// schedule says, at most of all ranks. A busy machine makes the other steps longer.
double largest_difference(const TracedJob& job, int ranks, int steps_of_job) {
  double largest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const double expected =
        number_behind(job.outcome, "rank " + std::to_string(rank) + " should be idle for ");
    EXPECT_GT(expected, 0.1) << job.outcome.text;
    EXPECT_EQ(job.of(rank, "F" + std::to_string(rank) + ".3").size(), size_t(steps_of_job));
    EXPECT_EQ(job.of(rank, "Pipeline::step").size(), size_t(steps_of_job));
    std::vector<std::pair<double, double>> steps;  // how long each took, and was idle
    for (const Json& step : job.of_kind(rank, "step")) {
      if (!step.at("name").get<std::string>().starts_with("step ")) continue;
      steps.emplace_back(step.at("dur").get<double>(),
                         step.at("args").at("bubble, us").get<double>());
    }
    EXPECT_EQ(steps.size(), size_t(steps_of_job - 1));
    if (steps.empty()) return 1;
    const auto [took, idle] = *std::min_element(steps.begin(), steps.end());
    largest = std::max(largest, std::abs(idle / took - expected));
  }
  return largest;
}

// A machine that is busy with something else during all steps of a job is asked again.
TEST(TracesOfPipelines, MeasureTheBubble) {
  constexpr int kPipelineRanks = 3, kPipelineSteps = 6, kJobs = 4;
  constexpr double kMost = 0.08;
  double difference = 1;
  std::string text;
  for (int i = 0; i < kJobs && difference > kMost; ++i) {
    const TracedJob job(kPipelineRanks, "pipeline");
    ASSERT_EQ(job.outcome.code, 0) << job.outcome.text;
    EXPECT_TRUE(holds(job.outcome, "exposed    bubble  waiting for data")) << job.outcome.text;
    difference = largest_difference(job, kPipelineRanks, kPipelineSteps);
    text = job.outcome.text;
  }
  EXPECT_LE(difference, kMost) << text;
}

// The rank that failed and those that could not go on have written what they did.
TEST(TracesOfFailures, HoldWhatTheRanksDid) {
  for (const char* fault : {"throw", "terminate"}) {
    SCOPED_TRACE(fault);
    const TracedJob job(3, fault);
    EXPECT_NE(job.outcome.code, 0) << fault;
    EXPECT_TRUE(holds(job.outcome, "catena-run: rank 2 ")) << job.outcome.text;
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(job.of_kind(rank, "update").size(), 1u) << "rank " << rank;
      EXPECT_EQ(job.of(rank, "my step").size(), 2u) << "rank " << rank;
    }
    EXPECT_EQ(job.folder.entries(), 1);
  }
}

// What the first attempt has left is of another time.
TEST(TracesOfFailures, AreOfTheLastAttempt) {
  const TracedJob job(2, "throw-first", "--max-restarts 1");
  EXPECT_EQ(job.outcome.code, 0) << job.outcome.text;
  EXPECT_TRUE(holds(job.outcome, "2 attempts")) << job.outcome.text;
  EXPECT_TRUE(holds(job.outcome, "2 ranks and 2 steps")) << job.outcome.text;
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(job.of(rank, "my step").size(), 3u);
  EXPECT_EQ(job.folder.entries(), 1);
}

// A process that is killed writes nothing; the others are there, and the rank is named.
TEST(TracesOfFailures, NameAKilledRank) {
  const TracedJob job(2, "kill");
  EXPECT_EQ(job.outcome.code, 137) << job.outcome.text;
  EXPECT_TRUE(holds(job.outcome, "trace: nothing of rank 1: killed by a signal"))
      << job.outcome.text;
  EXPECT_EQ(job.of_kind(0, "update").size(), 1u);
  EXPECT_TRUE(job.of_kind(1, "update").empty());
}

}  // namespace
}  // namespace catena
