// Pipelines on GPUs: all stages on one, captured steps, ranks that share a GPU, and two GPUs.
#include <cmath>
#include <map>

#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "cuda/gpu.h"
#include "parallel/pipeline/model.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

constexpr int kMicroBatches = 4, kSteps = 12;

std::vector<Schedule> schedules(int ranks) {
  return {gpipe(ranks, kMicroBatches), one_forward_one_backward(ranks, kMicroBatches),
          interleaved(ranks, 2, kMicroBatches), zero_bubble(ranks, kMicroBatches),
          zb_v(ranks, kMicroBatches)};
}

void expect_close(const Outcome& got, const Outcome& expected, const std::string& what) {
  for (size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], expected.losses[i], 1e-4) << what << ", step " << i;
  for (const auto& [name, values] : expected.parameters) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(got.parameters.at(name)[i] - values[i], 2);
      norm += std::pow(values[i], 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(norm) + 1e-5) << what << ": " << name;
  }
}

Training short_training() {
  Training training{.steps = kSteps, .rule = "SGD"};
  training.options.clip_norm = 1;
  return training;
}

TEST(PipelineOnOneGpu, EqualsTheModelWithoutStages) {
  CATENA_NEEDS_GPU();
  const Training training = short_training();
  const Outcome expected = train_without_stages(kMicroBatches, training);  // on the CPU
  for (const Schedule& schedule : schedules(3))
    expect_close(train_in_process(schedule, std::vector<Device>(3, cuda_device(0)), training),
                 expected, schedule.name);
}

// Steps on one batch's arrays, whose contents change; replayed from the fourth on.
Outcome train_captured(const Schedule& schedule, const Training& training, bool replay,
                       const std::function<Pipeline(Sequence&)>& make) {
  Sequence model = filled(training.with);
  Pipeline pipeline = make(model);
  pipeline.setup([&] { return make_rule(training.rule); });
  const Batch first = batch_of(0, training.samples, dtype::float32);
  int here = 0;
  while (!pipeline.has_stage(here)) ++here;
  const Device device = pipeline.device_of(here);
  const Array x = first.x.to(device), t = first.t.to(device);
  const Array loss = zeros({}, {dtype::float32, device});
  const auto step = [&] {
    const Array value = pipeline.step(x, t, cross_entropy);
    if (value.defined()) loss.assign(value);
  };
  Outcome outcome;
  cuda::Graph graph;
  for (int i = 0; i < training.steps; ++i) {
    const Batch batch = batch_of(i, training.samples, dtype::float32);
    x.assign(batch.x.to(device));
    t.assign(batch.t.to(device));
    if (replay && i == 3) {
      pipeline.prepare_for_capture();
      graph = cuda::Graph::capture(device, step);
    }
    graph.defined() ? graph.launch() : step();
    outcome.losses.push_back(loss.item<double>());
  }
  note_values(model, outcome);
  return outcome;
}

TEST(PipelineOnOneGpu, ReplayedStepsEqualEagerOnes) {
  CATENA_NEEDS_GPU();
  for (const char* rule : {"SGD", "Adam"}) {
    Training training = short_training();
    training.rule = rule;
    for (const Schedule& schedule : schedules(3)) {
      const auto make = [&](Sequence& model) {
        return Pipeline(model, even_cut(schedule.stages()), schedule,
                        std::vector<Device>(3, cuda_device(0)), training.options);
      };
      const Outcome eager = train_captured(schedule, training, false, make);
      const Outcome replayed = train_captured(schedule, training, true, make);
      EXPECT_EQ(replayed.losses, eager.losses) << schedule.name;
      EXPECT_EQ(difference(replayed.parameters, eager.parameters), "") << schedule.name;
      EXPECT_NE(eager.losses[5], eager.losses[6]);
    }
  }
}

comm::ThreadsOptions on(const std::vector<Device>& devices, const std::string& implementation) {
  comm::ThreadsOptions options;
  options.devices = devices;
  options.implementation = implementation;
  return options;
}

Outcome train_on_ranks(const Schedule& schedule, const Training& training,
                       const comm::ThreadsOptions& options) {
  Outcome outcome;
  comm::run_threads(
      schedule.ranks(),
      [&](Communicator& comm) {
        Sequence model = filled(training.with);
        Pipeline pipeline(model, even_cut(schedule.stages()), schedule, comm, training.options);
        Outcome own;
        run_steps(pipeline, training, own);
        pipeline.collect();
        if (comm.rank() > 0) return;
        outcome = own;
        note_values(model, outcome);
      },
      options);
  return outcome;
}

TEST(PipelineOnOneGpu, RanksThatShareItEqualOneProcess) {
  CATENA_NEEDS_GPU();
  const Training training = short_training();
  const Outcome expected = train_without_stages(kMicroBatches, training);
  for (const Schedule& schedule : schedules(2))
    expect_close(
        train_on_ranks(schedule, training, on({cuda_device(0), cuda_device(0)}, "threads")),
        expected, schedule.name);
}

TEST(PipelineOnGpus, PeerCopiesAndNcclEqualOneProcess) {
  CATENA_NEEDS_GPUS(2);
  const Training training = short_training();
  const Outcome expected = train_without_stages(kMicroBatches, training);
  const std::vector<Device> two{cuda_device(0), cuda_device(1)};
  for (const Schedule& schedule : schedules(2)) {
    expect_close(train_in_process(schedule, two, training), expected, schedule.name);
    expect_close(train_on_ranks(schedule, training, on(two, "nccl")), expected, schedule.name);
  }
}

TEST(PipelineOnGpus, ReceivesThatWaitGiveTheSameBits) {
  CATENA_NEEDS_GPUS(2);
  Training training = short_training();
  const std::vector<Device> two{cuda_device(0), cuda_device(1)};
  for (const Schedule& schedule : schedules(2)) {
    training.options.receives_wait = false;
    const Outcome at_once = train_on_ranks(schedule, training, on(two, "nccl"));
    training.options.receives_wait = true;
    expect_close(train_on_ranks(schedule, training, on(two, "nccl")), at_once, schedule.name);
  }
}

// Nobody waits for a copy but who uses it: the host runs ahead of the devices by many steps.
TEST(PipelineOnGpus, StepsWithoutAPauseEqualStepsWithOne) {
  CATENA_NEEDS_GPUS(2);
  const std::vector<Device> devices{cuda_device(0), cuda_device(1), cuda_device(0)};
  for (const Schedule& schedule : schedules(3)) {
    Outcome outcomes[2];
    for (const bool pauses : {false, true}) {
      Sequence model = filled();
      Pipeline pipeline(model, even_cut(schedule.stages()), schedule, devices, {.seed = 5});
      pipeline.setup([] { return optimizers::SGD(0.1); });
      for (int i = 0; i < kSteps; ++i) {
        const Batch batch = batch_of(i, 64, dtype::float32);
        pipeline.step(batch.x, batch.t, cross_entropy);
        if (pauses) pipeline.loss();
      }
      note_values(model, outcomes[pauses]);
    }
    expect_close(outcomes[0], outcomes[1], schedule.name);
  }
}

TEST(PipelineOnGpus, MeasuredStepsHaveEveryActionInOrder) {
  CATENA_NEEDS_GPUS(2);
  for (const Schedule& schedule : schedules(2)) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(schedule.stages()), schedule,
                      {cuda_device(0), cuda_device(1)});
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 16, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    const Simulation timeline = pipeline.measure(batch.x, batch.t, cross_entropy, 2);
    std::map<std::pair<int, Action>, Span> spans;
    for (const Span& span : timeline.timeline) spans[{span.step, span.action}] = span;
    constexpr double kClocks = 100e-6;  // of two devices, which are read one after the other
    for (int step = 0; step < 2; ++step)
      for (int stage = 1; stage < schedule.stages(); ++stage)
        for (int m = 0; m < kMicroBatches; ++m)
          EXPECT_GE(spans.at({step, {Kind::kForward, stage, m}}).begin + kClocks,
                    spans.at({step, {Kind::kForward, stage - 1, m}}).end)
              << schedule.name;
    for (const RankTimes& t : rank_times(timeline)) EXPECT_GT(t.computing, 0);
  }
}

TEST(PipelineOnGpus, ReplayedStepsOverNcclEqualEagerOnes) {
  CATENA_NEEDS_GPUS(2);
  const Training training = short_training();
  const std::vector<Device> two{cuda_device(0), cuda_device(1)};
  for (const Schedule& schedule : schedules(2)) {
    std::vector<Outcome> outcomes[2];
    for (const bool replay : {false, true}) {
      outcomes[replay].resize(2);
      comm::run_threads(
          2,
          [&](Communicator& comm) {
            outcomes[replay][size_t(comm.rank())] =
                train_captured(schedule, training, replay, [&](Sequence& model) {
                  return Pipeline(model, even_cut(schedule.stages()), schedule, comm,
                                  training.options);
                });
          },
          on(two, "nccl"));
    }
    for (size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(outcomes[1][r].losses, outcomes[0][r].losses) << schedule.name;
      EXPECT_EQ(difference(outcomes[1][r].parameters, outcomes[0][r].parameters), "")
          << schedule.name;
    }
  }
}

}  // namespace
}  // namespace catena::parallel::pipeline
