// Checkpoints of every layout, loaded by every other: training goes on with the same bits.
#include "catena/array/random.h"
#include "catena/optimizers/moving_average.h"
#include "catena/training/checkpoint_folder.h"
#include "error_text.h"
#include "parallel/pipeline/model.h"
#include "set_up.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

using namespace parallel::pipeline::test;  // NOLINT: the model
using optimizers::MovingAverage;
using parallel::GridShape;
using parallel::Sharding;
using parallel::pipeline::Cut;
using parallel::pipeline::Pipeline;
using parallel::pipeline::PipelineOptions;
using parallel::pipeline::Sequence;

// So many replicas of so many stages, whose states may be spread over the replicas.
struct Layout {
  int data = 1, stages = 1;
  Sharding sharding = Sharding::kNone;
  int hosts = 1;  // within each of which they are spread

  std::string text() const {
    return message(data, " x ", stages, sharding == Sharding::kNone ? "" : " sharded",
                   hosts > 1 ? " within hosts" : "");
  }
};

std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    layouts.push_back({ranks});
    if (ranks > 1) layouts.push_back({ranks, 1, Sharding::kStates});
    if (ranks > 1) layouts.push_back({1, ranks});
  }
  layouts.push_back({2, 2});
  layouts.push_back({2, 2, Sharding::kStates});
  layouts.push_back({4, 1, Sharding::kStates, 2});
  return layouts;
}

constexpr int64_t kBatch = 6;

// The model of the tests of pipelines, with a weight that units of several stages share.
Sequence tied_model(Dtype dtype) { return filled_with_ties({.dropout = false, .dtype = dtype}); }

// What a run has besides model and optimizer.
struct State {
  RandomState random{11};
  int64_t position = 0;
  PipelineState pipeline;
  serializers::Checkpoint checkpoint;

  State() {
    checkpoint.add("random", random);
    checkpoint.add("position", position);
  }
  // The first replica has all samples, the others none: so the bits do not depend on their number.
  Batch next(bool has_samples, Dtype dtype) {
    const double scale = random.uniform({}).item<double>();
    Batch batch = batch_of(position++, kBatch, dtype);
    batch.x = multiply(batch.x, scale);
    const Slice samples(0, has_samples ? kBatch : 0);
    return {batch.x(samples), batch.t(samples)};
  }
};

struct Job {
  int first = 0, last = 0;  // steps
  Dtype dtype = dtype::float32;
  std::string load_from = {}, save_to = {};
};

// Loads, trains and saves; `step` does a step.
template <class Step>
void run_job(Communicator& comm, const Job& job, State& state, Step step,
             const std::function<void()>& average) {
  if (!job.load_from.empty()) {
    CheckpointFolder folder(job.load_from, &comm);
    EXPECT_EQ(folder.load(state.checkpoint), job.first);
    EXPECT_EQ(state.position, job.first);
  }
  for (int i = job.first; i < job.last; ++i) step();
  if (job.last > job.first) average();  // the mean of three equal numbers may round
  if (!job.save_to.empty()) {
    CheckpointFolder folder(job.save_to, &comm);
    folder.save_async(state.checkpoint, job.last);
    step();  // what was saved does not change any more
    folder.wait();
  }
}

void train_replicas(Communicator& comm, const Layout& layout, const Job& job, Outcome& outcome) {
  Sequence tied = tied_model(job.dtype);
  tied.to(comm.device());
  Mesh mesh(comm, {{"host", layout.hosts}, {"rank", -1}});
  auto optimizer = create_multi_node_optimizer(optimizers::Adam(0.01),
                                               parallel::DataAxes{mesh, {"host", "rank"}, {"rank"}},
                                               {.sharding = layout.sharding});
  const auto average = optimizers::add_moving_average(optimizer.actual_optimizer(), 0.9);
  optimizer.setup(tied);
  const bool has_samples = comm.rank() == 0;
  optimizer.set_batch_weight(has_samples ? kBatch : 0, kBatch);
  State state;
  state.checkpoint.add("model", tied);
  state.checkpoint.add("optimizer", optimizer.actual_optimizer());
  state.checkpoint.add("pipeline", state.pipeline);
  const auto step = [&] {
    const Batch batch = state.next(has_samples, job.dtype);
    optimizer.zero_grads();
    if (has_samples)
      cross_entropy(tied(Variable::constant(batch.x.to(comm.device()))), batch.t.to(comm.device()))
          .backward();
    optimizer.update();
  };
  run_job(comm, job, state, step, [&] { optimizer.average_persistents(); });
  if (comm.rank() == 0) note_values(tied, outcome);
  const MovingAverage::Scope in_use(*average);
  if (comm.rank() == 0) outcome.averages = named_values(tied);
}

void train_stages(Communicator& comm, const Layout& layout, const Job& job, Outcome& outcome) {
  const parallel::Grid grid(comm, {.data = layout.data, .pipeline = layout.stages});
  Sequence tied = tied_model(job.dtype);
  const Cut cut = even_cut(layout.stages, int(tied.size()));
  Pipeline pipeline(tied, cut, all_forwards_first(layout.stages, 1), grid,
                    {.seed = 3, .buckets = {.sharding = layout.sharding}});
  std::shared_ptr<MovingAverage> average;
  pipeline.setup([&] {
    auto rule = std::make_unique<optimizers::Adam>(0.01);
    average = optimizers::add_moving_average(*rule, 0.9);
    return std::unique_ptr<Optimizer>(std::move(rule));
  });
  const bool has_samples = grid.replica() == 0;
  pipeline.set_batch_weight(has_samples ? kBatch : 0, kBatch);
  State state;
  add_pipeline(state.checkpoint, pipeline);
  const auto step = [&] {
    const Batch batch = state.next(has_samples, job.dtype);
    pipeline.step(batch.x, batch.t, cross_entropy);
  };
  run_job(comm, job, state, step, [&] { pipeline.average_persistents(); });
  pipeline.collect();
  if (comm.rank() == 0) note_values(tied, outcome);
  const MovingAverage::Scope in_use(*average);
  pipeline.collect();
  if (comm.rank() == 0) outcome.averages = named_values(tied);
}

Outcome train(const Layout& layout, const Job& job) {
  Outcome outcome;
  comm::run_threads(layout.data * layout.stages, [&](Communicator& comm) {
    if (layout.stages > 1)
      train_stages(comm, layout, job, outcome);
    else
      train_replicas(comm, layout, job, outcome);
  });
  return outcome;
}

void expect_same(const Outcome& got, const Outcome& expected, const std::string& what) {
  EXPECT_EQ(difference(got.parameters, expected.parameters), "") << what;
  EXPECT_EQ(difference(got.averages, expected.averages), "") << what;
  EXPECT_EQ(difference(got.persistents, expected.persistents), "") << what;
}

TEST(CheckpointLayouts, EveryPairGoesOnWithTheSameBits) {
  const Outcome expected = train({}, {0, 5});
  const std::vector<Layout> layouts = all_layouts();
  for (const Layout& saved : layouts) {
    const TempFolder folder;
    train(saved, {.first = 0, .last = 3, .save_to = folder.path()});
    for (const Layout& loaded : layouts)
      expect_same(train(loaded, {.first = 3, .last = 5, .load_from = folder.path()}), expected,
                  saved.text() + " loaded as " + loaded.text());
    if (HasFailure()) return;
  }
}

// Gradients of 16 bits that stages send round otherwise than those that one stage adds up: so
// training goes on alike with as many stages as before, and all layouts begin alike.
TEST(CheckpointLayouts, SixteenBitsWithMasterCopiesToo) {
  constexpr Dtype kDtype = dtype::bfloat16;
  const std::vector<Layout> layouts = {
      {1}, {4, 1, Sharding::kStates}, {3, 1, Sharding::kStates}, {1, 3}, {2}};
  for (const Layout& saved : layouts) {
    const TempFolder folder;
    train(saved, {0, 3, kDtype, {}, folder.path()});
    const Outcome there = train(saved, {0, 3, kDtype}), later = train(saved, {0, 5, kDtype});
    for (const Layout& loaded : layouts) {
      const std::string what = saved.text() + " loaded as " + loaded.text();
      expect_same(train(loaded, {3, 3, kDtype, folder.path()}), there, what);
      if (loaded.stages == saved.stages)
        expect_same(train(loaded, {3, 5, kDtype, folder.path()}), later, what + ", later");
    }
  }
}

// Two micro-batches, dropout and normalization, on so many ranks; `load` and `save` are paths.
Outcome train_pipeline(int stages, uint64_t seed, int first, int last, const std::string& load,
                       const std::string& save) {
  Outcome outcome;
  comm::run_threads(stages, [&](Communicator& comm) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(stages), all_forwards_first(stages, 2), comm, {.seed = seed});
    pipeline.setup([] { return optimizers::Adam(0.01); });
    serializers::Checkpoint state;
    add_pipeline(state, pipeline);
    if (!load.empty()) CheckpointFolder(load, &comm).load(state);
    EXPECT_EQ(pipeline.steps(), first);
    for (int i = first; i < last; ++i) {
      const Batch batch = batch_of(i, 8, dtype::float32);
      pipeline.step(batch.x, batch.t, cross_entropy);
    }
    if (!save.empty()) CheckpointFolder(save, &comm).save(state, last);
    pipeline.collect();
    if (comm.rank() == 0) note_values(model, outcome);
  });
  return outcome;
}

TEST(CheckpointLayouts, RandomNumbersOfPipelinesGoOn) {
  const TempFolder folder;
  const Outcome expected = train_pipeline(1, 3, 0, 5, "", "");
  train_pipeline(2, 3, 0, 3, "", folder.path());
  expect_same(train_pipeline(3, 9, 3, 5, folder.path(), ""), expected, "with the saved seed");
}

TEST(CheckpointLayouts, APipelineOfOneProcessFitsOneFile) {
  const TempFolder folder;
  const std::string path = folder / "pipeline.npz";
  Outcome outcomes[2];
  for (int k = 0; k < 2; ++k) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(2 + k), all_forwards_first(2 + k, 1),
                      std::vector<Device>(size_t(2 + k), cpu(0)), {.seed = 3});
    pipeline.setup([] { return optimizers::Adam(0.01); });
    serializers::Checkpoint state;
    add_pipeline(state, pipeline);
    const Batch batch = batch_of(k, 8, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    k == 0 ? state.save(path) : state.load(path);
    note_values(model, outcomes[k]);
  }
  expect_same(outcomes[1], outcomes[0], "loaded");
}

// One file cannot hold what a rank does not have.
TEST(CheckpointLayouts, APartOfATensorDoesNotFitOneFile) {
  comm::run_threads(2, [](Communicator& comm) {
    Sequence tied = tied_model(dtype::float32);
    auto optimizer =
        testing::set_up(tied, optimizers::Adam(), comm, {.sharding = Sharding::kStates});
    serializers::Checkpoint state;
    state.add("parts", serializers::Checkpoint::Spread{.parts = [&] {
                serializers::TensorParts parts;
                for (const auto& own : optimizer->local_state())
                  parts.push_back(serializers::part_of(own.name, own));
                return parts;
              }});
    expect_contains(error_of<ValueError>([&] { state.to_arrays(); }),
                    {"this process has a part only", "CheckpointFolder"});
  });
}

}  // namespace
}  // namespace catena::training
