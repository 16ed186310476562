// Moving averages in checkpoints: of tensor-parallel layers and in pipelines they are saved as the
// parameters are.
#include <gtest/gtest.h>

#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/functions/loss/mean_squared_error.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/moving_average.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/training/checkpoint_folder.h"
#include "parallel/sharded_training.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

using catena::testing::wave;
using optimizers::MovingAverage;
using Values = std::map<std::string, std::vector<double>>;

namespace F = functions;
namespace pp = parallel::pipeline;

struct WholeBlock : FunctionSet {
  F::Linear up{4, 8}, down{8, 4};
  explicit WholeBlock(Communicator*) {}
  CATENA_FUNCTIONS(up, down)
};
struct SlicedBlock : FunctionSet {
  parallel::ColumnParallelLinear up;
  parallel::RowParallelLinear down;
  explicit SlicedBlock(Communicator* comm) : up(4, 8, *comm), down(8, 4, *comm) {}
  CATENA_FUNCTIONS(up, down)
};

Values averages_of(Optimizer& rule, MovingAverage& average) {
  Values values;
  for (const Parameter& p : rule.parameters()) values[p.name()] = average.of(p).to_vector<double>();
  return values;
}

// Averages after a load, of a checkpoint that has them after two updates, if there is one.
template <class Block>
Values run_block(const std::string& path, Communicator* comm, bool is_first) {
  const Device device = comm ? comm->device() : cpu(0);
  const DeviceScope scope(device);
  random::default_state(device).seed(is_first ? 1 : 2);
  Block model(comm);
  optimizers::Adam rule(0.1);
  const auto average = optimizers::add_moving_average(rule, 0.9);
  rule.setup(model);
  serializers::Checkpoint state;
  state.add("model", model);
  state.add("optimizer", rule);
  CheckpointFolder folder(path, comm);
  if (!is_first) folder.load(state);
  for (int i = 0; is_first && i < 2; ++i) {
    for (const auto& [name, p] : model.named_parameters())
      p.set_grad(wave(p.shape(), i, p.dtype()));
    rule.update();
  }
  if (is_first) folder.save(state, 1);
  return averages_of(rule, *average);
}

std::vector<Values> run_blocks(const std::string& path, int ranks, bool is_first) {
  std::vector<Values> all;
  all.resize(size_t(ranks));
  comm::run_threads(ranks, [&](Communicator& comm) {
    all[size_t(comm.rank())] = run_block<SlicedBlock>(path, &comm, is_first);
  });
  return all;
}

TEST(CheckpointAverages, OfTensorParallelLayersAreSlices) {
  const TempFolder folder;
  const std::vector<Values> saved = run_blocks(folder.path(), 2, true);
  ASSERT_NE(saved[0].at("/up/W"), saved[1].at("/up/W"));
  EXPECT_EQ(run_blocks(folder.path(), 2, false), saved);
  // The rows of the first rank come before those of the second.
  const Values whole = run_block<WholeBlock>(folder.path(), nullptr, false);
  std::vector<double> rows = saved[0].at("/up/W");
  rows.insert(rows.end(), saved[1].at("/up/W").begin(), saved[1].at("/up/W").end());
  EXPECT_EQ(whole.at("/up/W"), rows);
  EXPECT_EQ(whole.at("/down/b"), saved[0].at("/down/b"));
}

// States that are spread over ranks ---------------------------------------------------------------

// On each rank after a load, or, of the first run, after three steps.
std::vector<Values> run_spread(const std::string& path, int ranks,
                               const parallel::BucketOptions& options, bool is_first) {
  std::vector<Values> all;
  all.resize(size_t(ranks));
  comm::run_threads(ranks, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    catena::testing::ShardedModel model(comm, options);
    Optimizer& rule = model.optimizer.actual_optimizer();
    const auto average = optimizers::add_moving_average(rule, 0.9);
    serializers::Checkpoint state;
    state.add("optimizer", rule);
    CheckpointFolder folder(path, &comm);
    if (!is_first) folder.load(state);
    for (int i = 0; is_first && i < 3; ++i) model.step();
    if (is_first) folder.save(state, 1);
    const Values averages = all[size_t(comm.rank())] = averages_of(rule, *average);
    model.optimizer.gather_parameters();
    const auto before = catena::testing::values_of(model.net);
    {
      const MovingAverage::Scope in_use(*average);
      EXPECT_EQ(model.net.l3.W.data().to_vector<double>(), averages.at("/l3/W"));
    }
    EXPECT_EQ(catena::testing::values_of(model.net), before);
  });
  return all;
}

TEST(CheckpointAverages, AreSpreadAsTheStatesAre) {
  const std::vector<parallel::BucketOptions> shardings = catena::testing::all_shardings();
  std::vector<Values> whole;
  for (const parallel::BucketOptions& options : shardings) {
    SCOPED_TRACE(catena::testing::shown(options));
    const TempFolder folder;
    const std::vector<Values> saved = run_spread(folder.path(), 2, options, true);
    if (whole.empty()) whole = saved;
    EXPECT_EQ(saved, whole);
    for (const auto& own : run_spread(folder.path(), 3, shardings.back(), false))
      EXPECT_EQ(own, whole[0]);
    for (const auto& own : run_spread(folder.path(), 1, shardings[0], false))
      EXPECT_EQ(own, whole[0]);
  }
}

// Pipelines ---------------------------------------------------------------------------------------

pp::Sequence units() {
  pp::Sequence model;
  model.add(F::Linear(4, 6)).add(F::Linear(6, 5)).add(F::Linear(5, 4));
  return model;
}

// Averages of all stages of this rank.
Values run_stages(const std::string& path, Communicator& comm, bool is_first) {
  const DeviceScope scope(comm.device());
  random::default_state(cpu(0)).seed(is_first ? 1 : 2);
  random::default_state(comm.device()).seed(is_first ? 1 : 2);
  pp::Sequence model = units();
  std::shared_ptr<MovingAverage> average;
  pp::Pipeline pipeline(model, pp::partition(model, comm.size()),
                        pp::one_forward_one_backward(comm.size(), 2), comm);
  pipeline.setup([&] {
    auto rule = std::make_unique<optimizers::Adam>(0.1);
    average = optimizers::add_moving_average(*rule, 0.9);
    return std::unique_ptr<Optimizer>(std::move(rule));
  });
  serializers::Checkpoint state;
  add_pipeline(state, pipeline);
  CheckpointFolder folder(path, &comm);
  if (!is_first) folder.load(state);
  for (int i = 0; is_first && i < 2; ++i)
    pipeline.step(wave({4, 4}, i, Dtype::kFloat32).to(comm.device()),
                  zeros({4, 4}, {dtype::float32, comm.device()}),
                  [](const Variable& y, const Array& t) {
                    return F::mean_squared_error(y, Variable::constant(t));
                  });
  if (is_first) folder.save(state, 1);
  return averages_of(pipeline.optimizer(comm.rank()), *average);
}

Values run_pipeline(const std::string& path, int ranks, bool is_first) {
  std::vector<Values> all;
  all.resize(size_t(ranks));
  comm::run_threads(ranks, [&](Communicator& comm) {
    all[size_t(comm.rank())] = run_stages(path, comm, is_first);
  });
  Values merged;
  for (const Values& each : all) merged.insert(each.begin(), each.end());
  return merged;
}

TEST(CheckpointAverages, OfAPipelineAreThoseOfItsStages) {
  const TempFolder folder;
  const Values saved = run_pipeline(folder.path(), 2, true);
  EXPECT_EQ(saved.size(), 6u);
  EXPECT_EQ(run_pipeline(folder.path(), 2, false), saved);
  EXPECT_EQ(run_pipeline(folder.path(), 3, false), saved);
  // A program without a pipeline.
  pp::Sequence model = units();
  optimizers::Adam rule(0.1);
  const auto average = optimizers::add_moving_average(rule, 0.9);
  rule.setup(model);
  PipelineState numbers;
  serializers::Checkpoint state;
  state.add("model", model);
  state.add("optimizer", rule);
  state.add("pipeline", numbers);
  CheckpointFolder(folder.path()).load(state);
  EXPECT_EQ(averages_of(rule, *average), saved);
}

}  // namespace
}  // namespace catena::training
