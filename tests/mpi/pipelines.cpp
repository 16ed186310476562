// Pipelines over processes, in the job of suite_main.cpp, against one process: bit by bit.
#include "parallel/pipeline/model.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

constexpr int kMicroBatches = 5;

Outcome train(Pipeline& pipeline, const Training& training) {
  Outcome outcome;
  run_steps(pipeline, training, outcome);
  pipeline.collect();
  note_values(pipeline.model(), outcome);
  return outcome;
}

class ProcessPipeline : public ::testing::TestWithParam<const char*> {};

Schedule schedule_of(const std::string& name, int ranks) {
  if (name == "gpipe") return gpipe(ranks, kMicroBatches);
  if (name == "1f1b") return one_forward_one_backward(ranks, kMicroBatches);
  if (name == "interleaved") return interleaved(ranks, 2, kMicroBatches);
  return name == "zb_v" ? zb_v(ranks, kMicroBatches) : zero_bubble(ranks, kMicroBatches);
}

TEST_P(ProcessPipeline, EqualsOneProcess) {
  const CommunicatorPtr comm = create_communicator("mpi", {.device = cpu(0)});
  const Schedule schedule = schedule_of(GetParam(), comm->size());
  Training training;
  training.options.clip_norm = 0.05;
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(schedule.stages()), schedule, comm, training.options);
  const Outcome outcome = train(pipeline, training);
  const Outcome expected = train_without_stages(kMicroBatches, training);
  EXPECT_EQ(outcome.losses, expected.losses);
  if (comm->rank() > 0) return;
  EXPECT_EQ(difference(outcome.parameters, expected.parameters), "");
  EXPECT_EQ(difference(outcome.persistents, expected.persistents), "");
}

INSTANTIATE_TEST_SUITE_P(Schedules, ProcessPipeline,
                         ::testing::Values("gpipe", "1f1b", "interleaved", "zero_bubble", "zb_v"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace catena::parallel::pipeline
