#include "catena/optimizers/moving_average.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/core/graph.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::all_values;
using catena::testing::expect_near;
using catena::testing::Model;
using catena::testing::Values;

Values averages(const MovingAverage& average, const Parameters& parameters) {
  Values result;
  for (const Parameter& p : parameters) result.push_back(average.of(p).to_vector<double>());
  return result;
}

// What the rule updates: the parameters, or their master copies.
Values kept(Optimizer& rule) {
  Values result;
  for (const Parameter& p : rule.parameters())
    result.push_back(p.data().itemsize() == 2 ? rule.state_of(p).back().to_vector<double>()
                                              : p.data().to_vector<double>());
  return result;
}

TEST(MovingAverage, FollowsTheUpdates) {
  for (const Device device : catena::testing::test_devices()) {
    for (const Dtype dtype : {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16}) {
      Model model(dtype);
      model.to(device);
      Adam rule(0.05);
      rule.setup(model);
      const auto average = add_moving_average(rule, 0.75);
      Values expected = kept(rule);
      for (int64_t t = 1; t <= 10; ++t) {
        step(rule, model, t);
        const Values now = kept(rule);
        for (size_t k = 0; k < now.size(); ++k)
          for (size_t i = 0; i < now[k].size(); ++i)
            expected[k][i] = 0.75 * expected[k][i] + 0.25 * now[k][i];
      }
      EXPECT_EQ(average->of(model.parameters()[0]).dtype(),
                dtype == dtype::float64 ? dtype::float64 : dtype::float32);
      expect_near(averages(*average, model.parameters()), expected,
                  dtype == dtype::float64 ? 1e-14 : 1e-6);
    }
  }
}

TEST(MovingAverage, IsUsedAndRestoredBitForBit) {
  for (const Dtype dtype : {dtype::float32, dtype::bfloat16}) {
    Model model(dtype), undisturbed(dtype);
    Adam rule(0.05), other(0.05);
    rule.setup(model);
    other.setup(undisturbed);
    const auto average = add_moving_average(rule, 0.9);
    for (int64_t t = 1; t <= 3; ++t) {
      step(rule, model, t);
      step(other, undisturbed, t);
      const Values before = all_values(model.parameters());
      {
        const MovingAverage::Scope scope(*average);
        EXPECT_TRUE(average->in_use());
        const Values used = all_values(model.parameters());
        EXPECT_NE(used, before);
        expect_near(used, averages(*average, model.parameters()), itemsize(dtype) == 2 ? 0.01 : 0);
        expect_contains(error_of<ValueError>([&] { average->use(); }), {"in use already"});
        expect_contains(error_of<ValueError>([&] { rule.update(); }), {"restore()"});
      }
      EXPECT_EQ(all_values(model.parameters()), before);
    }
    EXPECT_EQ(all_values(model.parameters()), all_values(undisturbed.parameters()));
    EXPECT_THROW(average->restore(), ValueError);
  }
}

TEST(MovingAverage, IsSavedWithTheOptimizer) {
  Model model, other;
  SGD rule(0.1), resumed(0.1), bare(0.1);
  const auto average = add_moving_average(rule, 0.5);  // before setup
  rule.setup(model);
  for (int64_t t = 1; t <= 4; ++t) step(rule, model, t);
  EXPECT_EQ(rule.state().back().first, "average/l1/W");
  other.copy_parameters_from(model.parameters());
  resumed.setup(other);
  const auto taken = add_moving_average(resumed, 0.5);
  resumed.load_state(catena::testing::copied_state(rule));
  for (int64_t t = 5; t <= 8; ++t) {
    step(rule, model, t);
    step(resumed, other, t);
  }
  EXPECT_EQ(averages(*taken, other.parameters()), averages(*average, model.parameters()));
  Model third;
  bare.setup(third);
  const auto without = catena::testing::copied_state(bare);
  expect_contains(error_of<IoError>([&] { resumed.load_state(without); }), {"average/l2/b"});
}

TEST(MovingAverage, MovesWithTheParameters) {
  Model model, still;
  SGD rule(0.1), other(0.1);
  rule.setup(model);
  other.setup(still);
  const auto moved = add_moving_average(rule, 0.5), stayed = add_moving_average(other, 0.5);
  for (int64_t t = 1; t <= 6; ++t) {
    if (t == 3) model.to(cpu(1));
    step(rule, model, t);
    step(other, still, t);
  }
  EXPECT_EQ(moved->of(model.parameters()[0]).device(), cpu(1));
  EXPECT_EQ(averages(*moved, model.parameters()), averages(*stayed, still.parameters()));
  rule.setup(still);  // begins anew
  EXPECT_EQ(averages(*moved, still.parameters()), all_values(still.parameters()));
}

TEST(MovingAverage, LeavesSkippedUpdatesOut) {
  Model model;
  SGD rule(0.1);
  rule.setup(model);
  const auto average = add_moving_average(rule, 0.5);
  const auto scale = add_loss_scale(rule);
  scale->scaled(Variable::constant(ones({}, dtype::float32)));
  step(rule, model, 1);
  const Values before = averages(*average, model.parameters());
  rule.zero_grads();
  for (const Parameter& p : model.parameters()) p.set_grad(full(p.shape(), INFINITY, p.dtype()));
  rule.update();
  EXPECT_EQ(scale->skipped(), 1);
  EXPECT_EQ(averages(*average, model.parameters()), before);
}

TEST(MovingAverage, SaysWhatIsWrong) {
  expect_contains(error_of<ValueError>([] { MovingAverage(1.0); }), {"decay in [0, 1), got 1"});
  SGD rule;
  const auto average = add_moving_average(rule);
  EXPECT_EQ(average->decay(), 0.999);
  expect_contains(error_of<ValueError>([&] { average->use(); }), {"not set up"});
  expect_contains(error_of<ValueError>([&] { average->of(Parameter(ones({1}))); }),
                  {"not one of this optimizer"});
}

TEST(MovingAverage, ReplaysGoOnAveraging) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  std::vector<Values> results;
  for (const bool replay : {false, true}) {
    Model model;
    model.to(gpu);
    SGD rule(0.1);
    rule.setup(model);
    const auto average = add_moving_average(rule, 0.75);
    step(rule, model, 1);
    cuda::Graph graph;
    if (replay) {
      rule.prepare_for_capture();
      graph = cuda::Graph::capture(gpu, [&] { rule.update(); });
    }
    for (int t = 0; t < 5; ++t) {
      if (replay)
        graph.launch();
      else
        rule.update();
      const MovingAverage::Scope scope(*average);
    }
    results.push_back(averages(*average, model.parameters()));
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace catena::optimizers
