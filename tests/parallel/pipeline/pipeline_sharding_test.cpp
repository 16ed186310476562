// Stages whose replicas spread the rule's states and the gradients, against stages that keep all.
#include "catena/optimizers/loss_scale.h"
#include "error_text.h"
#include "parallel/pipeline/model.h"
#include "parallel/sharded_training.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

constexpr int64_t kSamples = 22;  // of all replicas, not equally many on each

struct ShardedCase {
  GridShape shape = {2, 2};
  int hosts = 1;  // within each of which replicas spread arrays
  BucketOptions buckets = sharded(Sharding::kNone);
  std::string rule = "Adam";
  Dtype dtype = dtype::float32;
  double clip_norm = 0;
  // Not where results are near: a bias before it has no gradient but rounding, which Adam enlarges.
  bool normalization = true;
  double loss_scale = 0;         // 0: none
  bool updates_by_hand = false;  // of a schedule without updates
  int overflows = -1;            // step in which the first replica's gradients are not finite

  std::string text() const {
    return message(shape.data, " x ", shape.pipeline, ", ", shown(buckets), ", ", rule, ", ",
                   dtype);
  }
};

Named train(const ShardedCase& c, int steps = 8) {
  std::vector<Named> values(size_t(c.shape.data));
  comm::run_threads(c.shape.data * c.shape.pipeline, [&](Communicator& comm) {
    const Grid grid(comm, c.shape);
    const int parts = c.shape.data / c.hosts;
    Mesh mesh(comm, {{"host", c.hosts}, {"gpu", parts}, {"stage", c.shape.pipeline}});
    Sequence model = filled_with_ties({.normalization = c.normalization, .dtype = c.dtype});
    const Cut cut = even_cut(c.shape.pipeline, int(model.size()));
    Schedule schedule = all_forwards_first(c.shape.pipeline, 2);
    if (c.updates_by_hand)
      for (auto& list : schedule.actions) list.resize(list.size() - 2);
    Pipeline pipeline(
        model, cut, schedule, mesh["stage"], DataAxes{mesh, {"host", "gpu"}, {"gpu"}},
        {.clip_norm = c.clip_norm, .updates = !c.updates_by_hand, .seed = 5, .buckets = c.buckets});
    pipeline.setup([&] {
      auto rule = rule_of({.rule = c.rule});
      if (c.loss_scale > 0) optimizers::add_loss_scale(*rule, {.initial = c.loss_scale});
      return rule;
    });
    const auto [begin, end] = shard(kSamples, grid.replica(), c.shape.data);
    pipeline.set_batch_weight(end - begin, kSamples);
    for (int i = 0; i < steps; ++i) {
      const Batch batch = batch_of(i, kSamples, c.dtype);
      const double factor = i == c.overflows && grid.replica() == 0 ? 3e38 : 1;
      pipeline.step(
          batch.x(Slice(begin, end)), batch.t(Slice(begin, end)),
          [&](const Variable& y, const Array& t) { return cross_entropy(y, t) * factor; });
      if (c.updates_by_hand)
        for (Optimizer* optimizer : pipeline.optimizers()) optimizer->update();
    }
    for (Optimizer* optimizer : pipeline.optimizers()) {
      EXPECT_EQ(optimizer->t(), steps - (c.overflows >= 0)) << c.text();
      for (const auto& arena : optimizer->layout().arenas())
        EXPECT_EQ(arena.covers().size(), c.buckets.sharding == Sharding::kNone
                                             ? arena.size()
                                             : arena.shard(grid.replica() % parts, parts).size());
    }
    pipeline.average_persistents();
    pipeline.collect();
    if (grid.position() > 0) return;
    Outcome own;
    note_values(model, own);
    own.parameters.merge(own.persistents);
    values[size_t(grid.replica())] = own.parameters;
  });
  for (const Named& replica : values) EXPECT_EQ(replica, values[0]) << c.text();
  EXPECT_EQ(values[0].at("first/W"), values[0].at("again/W")) << c.text();
  return values[0];
}

std::vector<BucketOptions> spread_in_pipelines() {
  return {sharded(Sharding::kStates), sharded(Sharding::kGradients),
          sharded(Sharding::kStates, true), sharded(Sharding::kGradients, true)};
}

TEST(PipelineSharding, HasTheBitsOfWholeStates) {
  for (const GridShape& shape : {GridShape{2, 2}, {3, 2}, {2, 3}}) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
      ShardedCase c{.shape = shape, .dtype = dtype};
      const Named whole = train(c);
      for (const BucketOptions& buckets : spread_in_pipelines()) {
        c.buckets = buckets;
        EXPECT_EQ(difference(train(c), whole), "") << c.text();
      }
    }
  }
}

void expect_near(const Named& got, const Named& expected, const ShardedCase& c) {
  for (const auto& [name, values] : expected)
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(got.at(name)[i], values[i], 2e-6) << name << ", " << c.text();
}

// Averages are made in another order.
TEST(PipelineSharding, StaysWithinHosts) {
  for (const double clip_norm : {0.0, 0.05}) {
    ShardedCase c{.shape = {4, 2}, .clip_norm = clip_norm, .normalization = false};
    const Named whole = train(c);
    c.hosts = 2;
    for (const BucketOptions& buckets : spread_in_pipelines()) {
      c.buckets = buckets;
      expect_near(train(c), whole, c);
    }
  }
}

// A norm over all stages is summed in another order.
TEST(PipelineSharding, ClipsByTheSameNorm) {
  for (const std::string rule : {"Adam", "LAMB"}) {
    ShardedCase c{.rule = rule, .clip_norm = 0.05, .normalization = false};
    const Named whole = train(c);
    ShardedCase free = c;
    free.clip_norm = 0;
    EXPECT_NE(difference(train(free), whole), "") << rule;
    for (const BucketOptions& buckets : spread_in_pipelines()) {
      c.buckets = buckets;
      expect_near(train(c), whole, c);
    }
  }
}

// What one replica of one stage finds is found by all replicas of all stages.
TEST(PipelineSharding, SkipsTheUpdatesOfAllWhereOneOverflows) {
  ShardedCase c{.loss_scale = 1024, .overflows = 2};
  const Named whole = train(c, 5);
  for (const BucketOptions& buckets : spread_in_pipelines()) {
    c.buckets = buckets;
    EXPECT_EQ(difference(train(c, 5), whole), "") << c.text();
  }
}

TEST(PipelineSharding, LeavesUpdatesToTheCaller) {
  ShardedCase c{.updates_by_hand = true};
  const Named whole = train(c);
  for (const BucketOptions& buckets : spread_in_pipelines()) {
    c.buckets = buckets;
    EXPECT_EQ(difference(train(c), whole), "") << c.text();
  }
}

TEST(PipelineSharding, RefusesWhatStagesCannotSpread) {
  comm::run_threads(2, [](Communicator& comm) {
    const Grid grid(comm, {2, 1});
    Sequence model = filled();
    const auto made_with = [&](const BucketOptions& buckets) {
      return error_of<ValueError>([&] {
        Pipeline(model, even_cut(1), all_forwards_first(1, 2), grid, {.buckets = buckets});
      });
    };
    expect_contains(made_with({.sharding = Sharding::kParameters}),
                    {"cannot gather parameters in use", "Sharding::kGradients"});
    expect_contains(made_with({.slices = 8}), {"buckets.slices is 8", "leave slices out"});
  });
}

}  // namespace
}  // namespace catena::parallel::pipeline
