// Measured steps, and where the time of ranks goes.
#include <algorithm>
#include <map>

#include "catena/parallel/pipeline/drawing.h"
#include "error_text.h"
#include "parallel/pipeline/model.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

constexpr int kSteps = 3;

std::vector<Schedule> schedules() {
  return {one_forward_one_backward(3, 4), interleaved(3, 2, 4), interleaved(3, 2, 4, 6),
          zero_bubble(3, 4), zb_v(3, 4)};
}

bool is_measured(const Action& action) { return action.kind != Kind::kReduce; }

// Every action once a step, none before what it needs, computations of a rank one after the other.
void expect_timeline_of(const Schedule& schedule, const Simulation& timeline, int steps) {
  const Schedule whole = with_updates(schedule);
  std::map<std::pair<int, Action>, Span> spans;
  std::vector<double> free(size_t(schedule.ranks()), 0);
  for (const Span& span : timeline.timeline) {
    EXPECT_TRUE(spans.insert({{span.step, span.action}, span}).second) << to_string(span.action);
    EXPECT_GE(span.begin, span.waits_from);
    EXPECT_GE(span.end, span.begin) << to_string(span.action);
    EXPECT_LE(span.end, timeline.seconds);
    if (is_message(span.action.kind)) continue;
    EXPECT_GE(span.begin, free[size_t(span.rank)]) << to_string(span.action);
    free[size_t(span.rank)] = span.end;
  }
  const auto waited = [](const Span& span) {
    return !is_message(span.action.kind) && span.begin > span.waits_from;
  };
  EXPECT_TRUE(std::any_of(timeline.timeline.begin(), timeline.timeline.end(), waited));
  size_t expected = 0;
  for (int step = 0; step < steps; ++step)
    for (int rank = 0; rank < whole.ranks(); ++rank)
      for (const Action& action : whole.actions[size_t(rank)]) {
        if (!is_measured(action)) continue;
        ++expected;
        const auto found = spans.find({step, action});
        ASSERT_NE(found, spans.end()) << to_string(action) << " of step " << step;
        EXPECT_EQ(found->second.rank, rank) << to_string(action);
      }
  EXPECT_EQ(timeline.timeline.size(), expected);
  for (int step = 0; step < steps; ++step)
    for (int stage = 1; stage < whole.stages(); ++stage)
      for (int m = 0; m < whole.micro_batches; ++m)
        EXPECT_GE(spans[std::pair(step, Action{Kind::kForward, stage, m})].begin,
                  spans[std::pair(step, Action{Kind::kForward, stage - 1, m})].end);
}

void expect_times_add_up(const Simulation& timeline) {
  const std::vector<RankTimes> times = rank_times(timeline);
  ASSERT_EQ(times.size(), size_t(timeline.ranks()));
  for (size_t rank = 0; rank < times.size(); ++rank) {
    const RankTimes& t = times[rank];
    for (const double part : {t.computing, t.messages, t.ranks, t.host}) EXPECT_GE(part, -1e-9);
    EXPECT_NEAR(t.computing + t.messages + t.ranks + t.host, timeline.seconds,
                1e-6 * timeline.seconds + 1e-9);
    EXPECT_NEAR(t.computing, timeline.busy[rank], 1e-6 * timeline.seconds + 1e-9);
  }
}

TEST(PipelineTimeline, InOneProcessHasEveryAction) {
  for (const Schedule& schedule : schedules()) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(schedule.stages()), schedule, {cpu(0), cpu(1), cpu(2)});
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 12, dtype::float32);
    const Simulation timeline = pipeline.measure(batch.x, batch.t, cross_entropy, kSteps);
    expect_timeline_of(schedule, timeline, kSteps);
    expect_times_add_up(timeline);
    EXPECT_EQ(pipeline.steps(), kSteps);
    expect_contains(draw_text(timeline), {schedule.name + ", measured"});
    expect_contains(draw_svg(timeline), {"</svg>"});
  }
}

TEST(PipelineTimeline, OverRanksEveryRankHasAllOfIt) {
  for (const Schedule& schedule : schedules())
    comm::run_threads(schedule.ranks(), [&](Communicator& comm) {
      Sequence model = filled();
      Pipeline pipeline(model, even_cut(schedule.stages()), schedule, comm);
      pipeline.setup([] { return optimizers::SGD(0.1); });
      const Batch batch = batch_of(0, 12, dtype::float32);
      pipeline.step(batch.x, batch.t, cross_entropy);
      const Simulation timeline = pipeline.measure(batch.x, batch.t, cross_entropy, kSteps);
      expect_timeline_of(schedule, timeline, kSteps);
      expect_times_add_up(timeline);
      EXPECT_EQ(timeline.seconds, comm.broadcast_object(timeline.seconds));
    });
}

// Steps that are measured train as others do, and later ones are not noted.
TEST(PipelineTimeline, MeasuringChangesNoResult) {
  const auto train = [](bool measures) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(6), interleaved(3, 2, 4), {cpu(0), cpu(1), cpu(2)},
                      {.seed = 3});
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 12, dtype::float32);
    if (measures) {
      pipeline.measure(batch.x, batch.t, cross_entropy, 2);
    } else {
      pipeline.step(batch.x, batch.t, cross_entropy);
      pipeline.step(batch.x, batch.t, cross_entropy);
    }
    pipeline.step(batch.x, batch.t, cross_entropy);
    Outcome outcome;
    outcome.losses.push_back(pipeline.loss());
    note_values(model, outcome);
    return outcome;
  };
  expect_equal(train(true), train(false), "measured");
}

TEST(PipelineTimeline, NothingIsNotedAfterAStepThatThrows) {
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(3), one_forward_one_backward(3, 4), {cpu(0), cpu(1), cpu(2)});
  pipeline.setup([] { return optimizers::SGD(0.1); });
  const Batch batch = batch_of(0, 12, dtype::float32);
  EXPECT_THROW(pipeline.measure(batch.x, batch.t,
                                [](const Variable&, const Array&) -> Variable {
                                  throw std::runtime_error("in the loss");
                                }),
               std::runtime_error);
  const Simulation timeline = pipeline.measure(batch.x, batch.t, cross_entropy);
  expect_timeline_of(one_forward_one_backward(3, 4), timeline, 1);
  expect_contains(
      error_of<ValueError>([&] { pipeline.measure(batch.x, batch.t, cross_entropy, 0); }),
      {"Pipeline::measure: 0 steps"});
}

// One micro-batch through two stages, by hand: 1 + 3 forward, 5 + 2 backward, messages of 1 s.
TEST(RankTimes, OfASimulationByHand) {
  Costs costs;
  costs.stages = {{.forward = 1, .backward = 2}, {.forward = 3, .backward = 5}};
  costs.latency = 1;
  const Simulation result = simulate(gpipe(2, 1), costs);
  const std::vector<RankTimes> times = rank_times(result);
  EXPECT_DOUBLE_EQ(times[0].computing, 3);
  EXPECT_DOUBLE_EQ(times[0].messages, 1);  // the gradient
  EXPECT_DOUBLE_EQ(times[0].ranks, 9);     // its message forth, and rank 1's work
  EXPECT_DOUBLE_EQ(times[1].computing, 8);
  EXPECT_DOUBLE_EQ(times[1].messages, 1);
  EXPECT_DOUBLE_EQ(times[1].ranks, 1 + 3);  // before the message and after its last action
  EXPECT_DOUBLE_EQ(times[0].host + times[1].host, 0);
  EXPECT_EQ(describe_times(result),
            "rank 0: computes 3 s ( 23.1 %), waits for messages 1 s (  7.7 %), for ranks 9 s "
            "( 69.2 %), for the host 0 s (  0.0 %)\n"
            "rank 1: computes 8 s ( 61.5 %), waits for messages 1 s (  7.7 %), for ranks 4 s "
            "( 30.8 %), for the host 0 s (  0.0 %)\n");
}

TEST(RankTimes, OfSimulationsAddUp) {
  for (const Schedule& schedule : schedules()) {
    Costs costs;
    costs.latency = 0.3;
    for (const Transfers transfers : {Transfers::kOverlap, Transfers::kBlock}) {
      costs.transfers = transfers;
      expect_times_add_up(simulate(with_updates(schedule), costs, {.steps = 2}));
    }
  }
}

// A rank whose computation was issued late waited for the host, but not while its message came.
TEST(RankTimes, LateHosts) {
  Simulation measured;
  measured.seconds = 10;
  measured.rank_of_stage = {0, 1};
  measured.busy = {1, 2};
  measured.peak_bytes = {0, 0};
  measured.timeline = {{0, 0, {Kind::kForward, 0, 0}, 0, 1, 0},
                       {1, 0, {Kind::kRecvInput, 1, 0}, 2, 3, 2},
                       {1, 0, {Kind::kForward, 1, 0}, 5, 7, 4}};
  const RankTimes times = rank_times(measured)[1];
  EXPECT_DOUBLE_EQ(times.computing, 2);
  EXPECT_DOUBLE_EQ(times.messages, 1);
  EXPECT_DOUBLE_EQ(times.host, 3);
  EXPECT_DOUBLE_EQ(times.ranks, 1 + 3);
}

}  // namespace
}  // namespace catena::parallel::pipeline
