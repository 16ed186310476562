// Replicas of pipelines against replicas without stages, and against one process.
#include <cmath>

#include "error_text.h"
#include "parallel/pipeline/model.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

struct Case {
  GridShape shape;
  int64_t samples = 22;  // of all replicas
  bool weighted = true;
  Ingredients with = {};
  double clip_norm = 0;
  bool over_mesh = false;  // whose batch is divided along two axes
};

Outcome train(const Case& c, int steps = 20) {
  Outcome outcome;
  std::vector<Named> gradients(size_t(c.shape.data * c.shape.pipeline));
  std::vector<Named> values(size_t(c.shape.data));
  comm::run_threads(int(gradients.size()), [&](Communicator& comm) {
    const Grid grid(comm, c.shape);
    Mesh mesh(comm, {{"replica", -1}, {"data", c.over_mesh ? 2 : 1}, {"stage", c.shape.pipeline}});
    Sequence model = filled(c.with);
    if (grid.replica() > 0)  // replicas begin with the first one's values
      for (const auto& [path, p] : model.named_parameters()) p.data() += 1;
    PipelineOptions options{.clip_norm = c.clip_norm, .seed = 5, .buckets = {64, 128, 64}};
    const Cut cut = even_cut(c.shape.pipeline);
    const Schedule schedule = all_forwards_first(c.shape.pipeline, 2);
    Pipeline pipeline = c.over_mesh ? Pipeline(model, cut, schedule, mesh["stage"],
                                               DataAxes{mesh, {"replica", "data"}}, options)
                                    : Pipeline(model, cut, schedule, grid, options);
    pipeline.setup([] { return make_rule("Adam"); });
    const auto [begin, end] = shard(c.samples, grid.replica(), c.shape.data);
    if (c.weighted) pipeline.set_batch_weight(end - begin, c.samples);
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      const Batch batch = batch_of(i, c.samples, c.with.dtype);
      pipeline.step(batch.x(Slice(begin, end)), batch.t(Slice(begin, end)), cross_entropy);
      losses.push_back(pipeline.loss());
    }
    note_gradients(pipeline, gradients[size_t(comm.rank())]);
    pipeline.average_persistents();
    pipeline.collect();
    if (grid.position() == 0) {
      Outcome own;
      note_values(model, own);
      values[size_t(grid.replica())] = own.parameters;
      if (grid.replica() == 0) {
        outcome.parameters = own.parameters;
        outcome.persistents = own.persistents;
        outcome.losses = losses;
      }
    }
  });
  for (const Named& replica : values) EXPECT_EQ(replica, values[0]) << "replicas differ";
  for (Named& part : gradients) outcome.gradients.merge(part);
  return outcome;
}

double largest_difference(const Named& a, const Named& b) {
  double worst = 0;
  for (const auto& [name, expected] : b) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(a.at(name)[i] - expected[i], 2);
      norm += std::pow(expected[i], 2);
    }
    worst = std::max(worst, std::sqrt(difference / (norm + 1e-30)));
  }
  return worst;
}

const GridShape kShapes[] = {{2, 2}, {2, 3}, {4, 2}};

// The axes may have any names, and several may divide the batch.
TEST(PipelineGrid, EqualsAMesh) {
  Case c{{4, 2}};
  const Outcome grid = train(c, 5);
  c.over_mesh = true;
  const Outcome mesh = train(c, 5);
  EXPECT_EQ(mesh.parameters, grid.parameters);
  EXPECT_EQ(mesh.losses, grid.losses);
}

TEST(PipelineGrid, RefusesStagesThatAreNotOfTheMesh) {
  comm::run_threads(2, [](Communicator& comm) {
    Mesh mesh(comm, {{"stage", 2}});
    Sequence model = filled();
    expect_contains(error_of<ValueError>([&] {
                      Pipeline(model, even_cut(2), all_forwards_first(2, 2), comm, DataAxes{mesh});
                    }),
                    {"is not of a mesh", "mesh[\"pipeline\"]"});
  });
}

TEST(PipelineGrid, EqualsReplicasWithoutStages) {
  for (const GridShape& shape : kShapes) {
    for (const double clip_norm : {0.0, 0.05}) {
      const Case c{.shape = shape, .clip_norm = clip_norm};
      Case whole = c;
      whole.shape.pipeline = 1;
      expect_equal(train(c), train(whole),
                   message(shape.data, " x ", shape.pipeline, ", clip_norm ", clip_norm));
    }
  }
}

TEST(PipelineGrid, EqualsOneProcess) {
  Training training;
  training.with = {.normalization = false, .dropout = false};
  const Outcome alone = train_without_stages(1, training);
  for (const GridShape& shape : kShapes) {
    const Outcome grid = train({.shape = shape, .with = training.with});
    EXPECT_LE(largest_difference(grid.parameters, alone.parameters), 2e-5)
        << shape.data << " x " << shape.pipeline;
    for (size_t i = 0; i < alone.losses.size(); ++i)
      EXPECT_NEAR(grid.losses[i], alone.losses[i], 1e-5);
  }
}

// The second replica has run out of samples.
TEST(PipelineGrid, AReplicaWithoutSamplesTakesPart) {
  comm::run_threads(4, [&](Communicator& comm) {
    const Grid grid(comm, {2, 2});
    Sequence model = filled({.normalization = false, .dropout = false});
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), grid, {.clip_norm = 1});
    pipeline.setup([] { return make_rule("Adam"); });
    Sequence alone = filled({.normalization = false, .dropout = false});
    Pipeline expected(alone, even_cut(1), all_forwards_first(1, 2), {cpu(0)}, {.clip_norm = 1});
    expected.setup([] { return make_rule("Adam"); });
    const int64_t n = grid.replica() == 0 ? 6 : 0;
    pipeline.set_batch_weight(n, 6);
    for (int i = 0; i < 3; ++i) {
      const Batch batch = batch_of(i, 6, dtype::float32);
      pipeline.step(batch.x(Slice(0, n)), batch.t(Slice(0, n)), cross_entropy);
      expected.step(batch.x, batch.t, cross_entropy);
      EXPECT_EQ(pipeline.loss(), expected.loss());
    }
    pipeline.collect();
    if (grid.position() > 0) return;
    const auto got = model.named_parameters(), want = alone.named_parameters();
    for (size_t k = 0; k < want.size(); ++k)
      EXPECT_EQ(got[k].second.data().to_vector<float>(), want[k].second.data().to_vector<float>())
          << want[k].first;
  });
}

// Of one replica, too, whose weight multiplies the loss.
TEST(PipelineGrid, WeightsAreShares) {
  comm::run_threads(2, [&](Communicator& comm) {
    for (const GridShape& shape : {GridShape{1, 2}, GridShape{2, 1}}) {
      const Grid grid(comm, shape);
      Sequence model = filled();
      Pipeline pipeline(model, even_cut(shape.pipeline), all_forwards_first(shape.pipeline, 2),
                        grid);
      pipeline.setup([] { return make_rule("Adam"); });
      for (const auto& [n, of] : {std::pair{4, 0}, {-1, 3}, {5, 3}})
        expect_contains(
            error_of<ValueError>([&, n = n, of = of] { pipeline.set_batch_weight(n, of); }),
            {"set_batch_weight: expected 0 <= n_local <= n_global"});
    }
  });
}

}  // namespace
}  // namespace catena::parallel::pipeline
