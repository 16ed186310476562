// What pipelines can do besides: recomputation, clipping, tied weights, loss scales, test passes.
#include <algorithm>
#include <cmath>

#include "catena/autograd/function_call.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/functions/loss/mean_squared_error.h"
#include "catena/optimizers/loss_scale.h"
#include "error_text.h"
#include "parallel/pipeline/model.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

const std::vector<Device> kFourDevices{cpu(0), cpu(1), cpu(2), cpu(3)};

// Neither the forward that finds out the shapes nor one that is repeated counts.
TEST(PipelineFeatures, NormalizationsCountEachSampleOnce) {
  comm::run_threads(3, [](Communicator& comm) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(3), all_forwards_first(3, 2), comm, {.recompute = {0, 1}});
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 10, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    for (size_t u = 0; u < model.size(); ++u) {
      const bool is_mine = even_cut(3).first[size_t(comm.rank())] <= int(u) &&
                           int(u) < even_cut(3).end(comm.rank(), model.size());
      if (model.layer(u) == nullptr || !is_mine) continue;
      for (const auto& [path, p] : model.layer(u)->named_persistents())
        EXPECT_EQ(p.samples(), p.over_ranks() == OverRanks::kMean ? 10 : 0) << path;
    }
  });
}

TEST(PipelineFeatures, ProductsThatAreKeptRunOnce) {
  struct Work : FunctionHook {
    void forward_ends(const FunctionCall& call) override { all += call.work().value_or(0); }
    int64_t all = 0;
  };
  const auto work_of = [](std::vector<int> stages, Keep keep) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(3), all_forwards_first(3, 2), {cpu(0), cpu(1), cpu(2)},
                      {.recompute = std::move(stages), .keep = keep});
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 10, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    Work work;
    const FunctionHookScope hook(work);
    pipeline.step(batch.x, batch.t, cross_entropy);
    return work.all;
  };
  const int64_t once = work_of({}, Keep::kNothing);
  EXPECT_GT(once, 0);
  EXPECT_EQ(work_of({0, 1, 2}, Keep::kNothing), 2 * once);
  EXPECT_EQ(work_of({0, 1, 2}, Keep::kProducts), once);
}

// Of 7 samples in micro-batches of 3, 2 and 2, and of a loss that does not declare what it counts.
TEST(PipelineFeatures, TheLossIsTheMeanOverSamples) {
  const auto squares = [](const Variable& y, const Array& t) {
    return F::sum(F::square(y)) / double(t.shape()[0]);
  };
  const auto loss_of = [&](int micro_batches) {
    Sequence model = filled({.normalization = false, .dropout = false, .dtype = dtype::float64});
    Pipeline pipeline(model, even_cut(1), all_forwards_first(1, micro_batches), {cpu(0)});
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 7, dtype::float64);
    pipeline.step(batch.x, batch.t, squares);
    return pipeline.loss();
  };
  EXPECT_NEAR(loss_of(3), loss_of(1), 1e-12);
}

// The first step of SGD moves the weights by rate * clipped gradient, whose norm is clip_norm.
TEST(PipelineFeatures, ClippedGradientsHaveTheNorm) {
  Training training;
  training.options.clip_norm = 0.05;
  training.rule = "SGD";  // rate 0.1
  training.steps = 1;
  const Outcome after = train_in_process(all_forwards_first(4, 4), kFourDevices, training);
  double in_memory = 0;
  for (const auto& [name, values] : after.gradients)
    for (const double g : values) in_memory += g * g;
  EXPECT_GT(std::sqrt(in_memory), 0.05) << "the gradients in memory are not clipped";
  Sequence model = filled();
  double squares = 0;
  for (const auto& [path, p] : model.named_parameters()) {
    const std::vector<double> before = p.data().to_vector<double>();
    for (size_t i = 0; i < before.size(); ++i)
      squares += std::pow(after.parameters.at(path)[i] - before[i], 2);
  }
  EXPECT_NEAR(std::sqrt(squares), 0.1 * 0.05, 1e-6);
  training.options.clip_norm = 1e6;  // of smaller gradients it changes nothing
  const Outcome kept = train_in_process(all_forwards_first(4, 4), kFourDevices, training);
  training.options.clip_norm = 0;
  EXPECT_EQ(kept.parameters,
            train_in_process(all_forwards_first(4, 4), kFourDevices, training).parameters);
}

TEST(PipelineFeatures, AHookThatClipsOneStageIsRefused) {
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), {cpu(0), cpu(1)});
  pipeline.setup([] {
    optimizers::SGD rule(0.1);
    rule.add_hook("clip", optimizers::gradient_clipping(1));
    return rule;
  });
  const Batch batch = batch_of(0, 8, dtype::float32);
  expect_contains(error_of<ValueError>([&] { pipeline.step(batch.x, batch.t, cross_entropy); }),
                  {"norm of one stage's gradients", "PipelineOptions::clip_norm"});
}

// Tied weights ------------------------------------------------------------------------------------

void fill_tied(Sequence& model) {
  const DeviceScope scope(cpu(0));
  model.add("in", layer(kInputs, kHidden, dtype::float32, 1));
  const Parameter shared(wave({kHidden, kHidden}, 2, dtype::float32, 0.6));
  model.add("first", Projection(shared));
  model.add("own", layer(kHidden, kHidden, dtype::float32, 3));
  model.add("second", Projection(shared));
  model.add("third", Projection(shared));
  model.add("head", layer(kHidden, kClasses, dtype::float32, 4));
}

Named tied_training(Pipeline& pipeline, std::vector<double>& losses) {
  pipeline.setup([] { return optimizers::Adam(0.01); });
  for (int i = 0; i < 10; ++i) {
    const Batch batch = batch_of(i, 9, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    losses.push_back(pipeline.loss());
  }
  pipeline.collect();
  return named_values(pipeline.model());
}

Named train_tied_in_process(int stages, std::vector<double>& losses,
                            const PipelineOptions& options = {}) {
  Sequence model;
  fill_tied(model);
  std::vector<Device> devices;
  for (int s = 0; s < stages; ++s) devices.push_back(cpu(s));
  Pipeline pipeline(model, even_cut(stages, 6), all_forwards_first(stages, 3), devices, options);
  return tied_training(pipeline, losses);
}

TEST(TiedWeights, StayEqualAndGetTheSumOfTheirGradients) {
  std::vector<double> losses, losses_of_one, losses_of_ranks;
  const Named one = train_tied_in_process(1, losses_of_one);
  EXPECT_EQ(one.at("first/W"), one.at("second/W"));
  EXPECT_EQ(one.at("first/W"), one.at("third/W"));
  for (const int stages : {2, 3, 6}) {
    losses.clear();
    EXPECT_EQ(train_tied_in_process(stages, losses), one) << stages << " stages";
    EXPECT_EQ(losses, losses_of_one);
  }
  Named of_ranks;
  comm::run_threads(3, [&](Communicator& comm) {
    Sequence model;
    fill_tied(model);
    if (comm.rank() == 2)  // as if ranks had begun with other values
      dynamic_cast<Projection&>(*model.layer(4)).W.data().fill(9);
    Pipeline pipeline(model, even_cut(3, 6), all_forwards_first(3, 3), comm);
    std::vector<double> own;
    const Named values = tied_training(pipeline, own);
    if (comm.rank() == 0) of_ranks = values, losses_of_ranks = own;
  });
  EXPECT_EQ(of_ranks, one);
  EXPECT_EQ(losses_of_ranks, losses_of_one);
}

// Adam divides a factor out of its gradients, so the norm shows in another way: with weights that
// are counted twice the clipped gradients, and SGD's steps, would be smaller.
TEST(TiedWeights, CountOnceInTheNorm) {
  const auto moved = [](int stages) {
    Sequence model, before;
    fill_tied(model);
    fill_tied(before);
    std::vector<Device> devices(size_t(stages), cpu(0));
    Pipeline pipeline(model, even_cut(stages, 6), all_forwards_first(stages, 3), devices,
                      {.clip_norm = 0.01});
    pipeline.setup([] { return optimizers::SGD(1); });
    const Batch batch = batch_of(0, 9, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    double squares = 0;
    const auto old = before.named_parameters(), now = model.named_parameters();
    for (size_t k = 0; k < now.size(); ++k) {
      if (now[k].first == "second/W" || now[k].first == "third/W") continue;
      const auto a = now[k].second.data().to_vector<double>();
      for (size_t i = 0; i < a.size(); ++i) {
        // Of the list before, in which the tied weights stand once.
        for (const auto& [path, p] : old)
          if (path == now[k].first) squares += std::pow(a[i] - p.data().to_vector<double>()[i], 2);
      }
    }
    return std::sqrt(squares);
  };
  EXPECT_NEAR(moved(1), 0.01, 1e-6);
  EXPECT_NEAR(moved(3), 0.01, 1e-6);
}

// Loss scales -------------------------------------------------------------------------------------

struct Scaled {
  Named parameters;
  std::vector<double> scales;  // of the stages
};

// The gradients of step 1 overflow.
Scaled train_scaled(int stages, bool on_ranks) {
  Scaled result;
  result.scales.resize(size_t(stages));
  const auto train = [&](Sequence& model, Pipeline& pipeline) {
    pipeline.setup([] {
      optimizers::Adam rule(0.01);
      optimizers::add_loss_scale(rule, {.initial = 1024});
      return rule;
    });
    for (int i = 0; i < 4; ++i) {
      const Batch batch = batch_of(i, 9, dtype::float32);
      const float factor = i == 1 ? 3e38f : 1.f;
      pipeline.step(batch.x, batch.t, [factor](const Variable& y, const Array& t) {
        return F::softmax_cross_entropy(y, t) * factor;
      });
    }
    for (int s = 0; s < stages; ++s) {
      if (!pipeline.has_stage(s)) continue;
      EXPECT_EQ(pipeline.optimizer(s).t(), 3) << "the update that overflowed does not count";
      for (const auto& stage : pipeline.optimizer(s).stages())
        if (auto* scale = dynamic_cast<optimizers::DynamicLossScale*>(stage.get()))
          result.scales[size_t(s)] = scale->value();
    }
    pipeline.collect();
    if (pipeline.has_stage(0)) result.parameters = named_values(model);
  };
  const Schedule schedule = all_forwards_first(stages, 3);
  if (on_ranks) {
    comm::run_threads(stages, [&](Communicator& comm) {
      Sequence model = filled();
      Pipeline pipeline(model, even_cut(stages), schedule, comm, {.seed = 3});
      train(model, pipeline);
    });
  } else {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(stages), schedule,
                      std::vector<Device>(size_t(stages), cpu(0)), {.seed = 3});
    train(model, pipeline);
  }
  return result;
}

TEST(PipelineLossScale, IsOneForAllStages) {
  const Scaled one = train_scaled(1, false);
  EXPECT_EQ(one.scales[0], 512);
  for (const bool on_ranks : {false, true}) {
    const Scaled three = train_scaled(3, on_ranks);
    EXPECT_EQ(three.parameters, one.parameters);
    EXPECT_EQ(three.scales, std::vector<double>(3, 512));
  }
}

// A factor of inputs that are huge: its gradient overflows, those of the other stages do not.
struct Gain : FunctionSet {
  OwnedParameter s{full({kInputs}, 1e-38, {dtype::float32, cpu(0)})};
  CATENA_PARAMETERS(s)
  Variable operator()(const Variable& x) const { return x * s; }
};

TEST(PipelineLossScale, SkipsTheUpdatesOfAllStagesWhenOneOverflows) {
  comm::run_threads(3, [](Communicator& comm) {
    Sequence model;
    model.add("gain", Gain());
    model.add("middle", layer(kInputs, kHidden, dtype::float32, 1));
    model.add("head", layer(kHidden, kClasses, dtype::float32, 2));
    Pipeline pipeline(model, even_cut(3, 3), all_forwards_first(3, 2), comm);
    pipeline.setup([] {
      optimizers::SGD rule(0.1);
      optimizers::add_loss_scale(rule, {.initial = 65536});
      return rule;
    });
    const Batch batch = batch_of(0, 8, dtype::float32);
    pipeline.step(batch.x * 1e38f, batch.t, cross_entropy);
    const bool overflows = comm.rank() == 0;
    for (const Parameter& p : pipeline.optimizer(comm.rank()).parameters()) {
      const std::vector<float> g = p.grad().to_vector<float>();
      // But for the first, which says that another stage's were not finite.
      const auto is_finite = [](float v) { return std::isfinite(v); };
      EXPECT_TRUE(overflows || std::all_of(g.begin() + 1, g.end(), is_finite));
    }
    EXPECT_EQ(pipeline.optimizer(comm.rank()).t(), 0) << "stage " << comm.rank();
    pipeline.step(batch.x, batch.t, cross_entropy);
    EXPECT_EQ(pipeline.optimizer(comm.rank()).t(), 1) << "stage " << comm.rank();
  });
}

// Test passes -------------------------------------------------------------------------------------

// Functions drop in test state, too, unless they are told.
const Ingredients kNoDropout{.dropout = false};

// Products of few rows round in another way.
void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
}

TEST(Prediction, IsTheModelInTestState) {
  const Batch batch = batch_of(3, 10, dtype::float32);
  Sequence alone = filled(kNoDropout);
  std::vector<float> expected;
  {
    const TestScope test(alone);
    const NoBackprop no_graph;
    expected = alone(Variable::constant(batch.x)).data().to_vector<float>();
  }
  for (const int64_t n : {10, 2}) {  // fewer than micro-batches, too
    const std::vector<float> rows(expected.begin(), expected.begin() + n * kClasses);
    Sequence model = filled(kNoDropout);
    Pipeline pipeline(model, even_cut(4), all_forwards_first(4, 3), kFourDevices);
    pipeline.setup([] { return optimizers::SGD(0.1); });
    expect_near(pipeline.predict(batch.x(Slice(0, n))).at(0).to_vector<float>(), rows);
    EXPECT_TRUE(model.training());
    comm::run_threads(4, [&](Communicator& comm) {
      Sequence own = filled(kNoDropout);
      Pipeline ranks(own, even_cut(4), all_forwards_first(4, 3), comm);
      ranks.setup([] { return optimizers::SGD(0.1); });
      const Arrays y = ranks.predict(comm.rank() == 0 ? Samples(batch.x(Slice(0, n))) : Samples());
      ASSERT_EQ(y.size(), comm.rank() == 3 ? 1u : 0u);
      for (const Array& one : y) expect_near(one.to_vector<float>(), rows);
    });
  }
}

// Training and test passes in turns: what messages hold is known of each apart.
TEST(Prediction, BetweenStepsChangesNothing) {
  const Outcome expected = train_without_stages(4);
  comm::run_threads(4, [&](Communicator& comm) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(4), all_forwards_first(4, 4), comm, {.seed = 5});
    pipeline.setup([] { return make_rule("Adam"); });
    for (int i = 0; i < 20; ++i) {
      const Batch batch = batch_of(i, 22, dtype::float32);
      pipeline.step(batch.x, batch.t, cross_entropy);
      EXPECT_EQ(pipeline.loss(), expected.losses[size_t(i)]);
      pipeline.predict(batch.x);
    }
  });
}

// Several inputs, targets and results -------------------------------------------------------------

TEST(PipelineFeatures, SeveralInputsTargetsAndResults) {
  const auto train = [](int stages) {
    const DeviceScope scope(cpu(0));
    Sequence model;
    model.add("mix", Joined(dtype::float32));
    model.add("split", [](const Variable& h) { return Variables{h, F::tanh(h) * 2.f, h}; });
    model.add("drop second", [](const Variables& xs) { return Variables{xs[0], xs[1]}; });
    model.add("last", FirstNormalized());
    Pipeline pipeline(model, even_cut(stages, 4), all_forwards_first(stages, 2),
                      std::vector<Device>(size_t(stages), cpu(0)));
    pipeline.setup([] { return optimizers::SGD(0.1); });
    std::vector<double> losses;
    for (int i = 0; i < 5; ++i) {
      const Array a = wave({7, kHidden}, i, dtype::float32),
                  b = wave({7, kHidden}, -i, dtype::float32);
      pipeline.step({a, b}, {b, a}, [](const Variables& ys, const Arrays& ts) {
        return F::mean_squared_error(ys[0], ts[0]) + F::mean_squared_error(ys[1], ts[1]);
      });
      losses.push_back(pipeline.loss());
    }
    return losses;
  };
  EXPECT_EQ(train(4), train(1));
  EXPECT_LT(train(1).back(), 10);
}

TEST(PipelineFeatures, StepsDrawNewNumbersAndSeedsOthers) {
  const auto losses = [](uint64_t seed) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), {cpu(0), cpu(1)},
                      {.seed = seed});
    pipeline.setup([] { return optimizers::SGD(0); });
    const Batch batch = batch_of(0, 8, dtype::float32);
    std::vector<double> result;
    for (int i = 0; i < 3; ++i) {
      pipeline.step(batch.x, batch.t, cross_entropy);
      result.push_back(pipeline.loss());
    }
    return result;
  };
  const std::vector<double> one = losses(1);
  EXPECT_NE(one[0], one[1]);
  EXPECT_NE(one[1], one[2]);
  EXPECT_EQ(losses(1), one);
  EXPECT_NE(losses(2), one);
}

}  // namespace
}  // namespace catena::parallel::pipeline
