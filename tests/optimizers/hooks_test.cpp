// Hooks that write into the gradients: Lasso, noise, bounds.
#include "catena/optimizers/hooks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "catena/core/graph.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::Model;

constexpr Dtype kDtypes[] = {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16};

// One update of p by SGD at a rate of 1: what the rule got as gradient.
std::vector<double> gradient_seen(const Array& p, const Array& g, const Hook& hook) {
  const Parameter parameter(p);
  SGD sgd(1);
  sgd.setup({parameter});
  sgd.add_hook("hook", hook);
  parameter.set_grad(g);
  const std::vector<double> before = parameter.data().to_vector<double>();
  sgd.update();
  std::vector<double> seen = parameter.data().to_vector<double>();
  for (size_t i = 0; i < seen.size(); ++i) seen[i] = before[i] - seen[i];
  return seen;
}

TEST(Hooks, LassoAddsTheSign) {
  for (const Device device : catena::testing::test_devices()) {
    for (const Dtype dtype : kDtypes) {
      const Array p = array({2.0, -3.0, 0.0}).astype(dtype).to(device);
      const Array g = array({0.5, 0.5, 0.5}).astype(dtype).to(device);
      EXPECT_EQ(gradient_seen(p, g, Lasso(0.25)), (std::vector<double>{0.75, 0.25, 0.5}))
          << dtype << " on " << device;
    }
  }
}

// Groups multiply the rate, and gradients that are scaled in memory are divided first.
TEST(Hooks, LassoFollowsGroupsAndLossScales) {
  const Parameter a(array({2.0f})), b(array({2.0f})), c(array({2.0f}));
  SGD sgd(1);
  sgd.setup({a, b, c});
  sgd.add_group("none", {"/0"}, {.decay = 0});
  sgd.add_group("double", {"/1"}, {.decay = 2});
  sgd.add_hook("lasso", Lasso(0.25));
  const auto scale = add_loss_scale(sgd, {.initial = 1024});
  scale->scaled(Variable::constant(ones({}, dtype::float32)));
  for (const Parameter& p : {a, b, c}) p.set_grad(array({512.0f}));
  sgd.update();
  EXPECT_EQ(a.data().item<float>(), 1.5f);
  EXPECT_EQ(b.data().item<float>(), 1.0f);
  EXPECT_EQ(c.data().item<float>(), 1.25f);
}

TEST(Hooks, HardClippingKeepsEachElementWithinBounds) {
  for (const Device device : catena::testing::test_devices()) {
    for (const Dtype dtype : kDtypes) {
      const Array p = zeros({4}, {dtype, device});
      const Array g = array({-3.0, -0.5, 0.25, 3.0}).astype(dtype).to(device);
      EXPECT_EQ(gradient_seen(p, g, gradient_hard_clipping(-1, 0.5)),
                (std::vector<double>{-1, -0.5, 0.25, 0.5}))
          << dtype << " on " << device;
    }
  }
  const std::vector<double> seen =
      gradient_seen(zeros({1}), array({double(NAN)}), gradient_hard_clipping(-1, 1));
  EXPECT_TRUE(std::isnan(seen[0]));
}

TEST(Hooks, NoiseHasItsVarianceAndFallsWithTheUpdates) {
  for (const Device device : catena::testing::test_devices()) {
    for (const bool prepared : {false, true}) {
      const Parameter p(zeros({20000}, {dtype::float32, device}));
      SGD sgd(1);
      sgd.setup({p});
      if (prepared) sgd.prepare_for_capture();
      sgd.add_hook("noise", GradientNoise(0.3));
      for (int t = 0; t < 3; ++t) {
        p.data().fill(0);
        p.set_grad(full({20000}, 2.0, {dtype::float32, device}));
        sgd.update();
        double sum = 0, squares = 0;
        for (const double v : p.data().to_vector<double>()) {
          sum += v + 2;
          squares += (v + 2) * (v + 2);
        }
        const double variance = 0.3 / std::pow(1 + t, 0.55);
        EXPECT_NEAR(sum / 20000, 0, 5 * std::sqrt(variance / 20000));
        EXPECT_NEAR(squares / 20000, variance, 0.05 * variance) << "t " << t;
      }
    }
  }
}

// Ranks that begin at one seed add equal noise; gaps of arenas stay zero.
TEST(Hooks, NoiseFollowsTheSeedAndLeavesGapsAlone) {
  std::vector<std::vector<std::vector<double>>> results;
  for (const uint64_t seed : {0, 0, 1}) {
    Model model;
    MomentumSGD rule(0.1);
    rule.setup(model);
    rule.add_hook("noise", GradientNoise(0.3, 0.55, seed));
    for (int t = 0; t < 3; ++t) step(rule, model, t);
    results.push_back(catena::testing::all_values(model.parameters()));
    const ParameterArena& arena = rule.layout().arenas()[0];
    for (const Block* block : {&arena.data(), &arena.gradient()}) {
      const std::vector<double> values = block->memory.to_vector<double>();
      for (size_t s = 0; s < arena.slots().size(); ++s) {
        const ParameterArena::Slot& slot = arena.slots()[s];
        for (int64_t i = slot.offset + slot.size; i < arena.end_of(s); ++i)
          EXPECT_EQ(values[size_t(i)], 0);
      }
    }
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
}

TEST(Hooks, SayWhatIsWrong) {
  expect_contains(error_of<ValueError>([] { Lasso(-1); }), {"Lasso", "at least 0, got -1"});
  expect_contains(error_of<ValueError>([] { gradient_hard_clipping(0.5, 1); }),
                  {"gradient_hard_clipping", "around 0, got 0.5 and 1"});
  EXPECT_THROW(gradient_hard_clipping(0, 0), ValueError);
  expect_contains(error_of<ValueError>([] { GradientNoise(-1); }), {"GradientNoise", "eta -1"});
  EXPECT_THROW(GradientNoise(NAN), ValueError);
}

// Ranks compare these, so that a hook on one of them alone is found.
TEST(Hooks, UpdatesKnowWhatHooksDidToTheirGradients) {
  const Parameter p(array({2.0f}));
  SGD sgd(1);
  sgd.setup({p});
  sgd.add_hook("decay", weight_decay(0.25));
  sgd.add_hook("clipping", gradient_clipping(3));
  sgd.add_hook("lasso", Lasso(0.5));
  sgd.add_hook("bounds", gradient_hard_clipping(-1, 2));
  sgd.add_hook("noise", GradientNoise(0.5, 0.25, (uint64_t{1} << 32) + 7));
  sgd.add_hook("own", [](UpdateContext& update) { update.note_change({"own", {1, 2, 3, 4}}); });
  EXPECT_TRUE(sgd.gradient_changes().empty());
  for (int step = 0; step < 2; ++step) {
    p.set_grad(array({1.0f}));
    sgd.update();
    EXPECT_EQ(sgd.gradient_changes(), (std::vector<GradientChange>{{"weight decay", {0.25}},
                                                                   {"clipping by the norm", {3}},
                                                                   {"sign decay", {0.5}},
                                                                   {"hard clipping", {-1, 2}},
                                                                   {"noise", {0.5, 0.25, 1, 7}},
                                                                   {"own", {1, 2, 3, 4}}}));
  }
  UpdateContext update(sgd);
  EXPECT_THROW(update.note_change({"", {1}}), ValueError);
  EXPECT_THROW(update.note_change({"two\tparts", {}}), ValueError);
}

// Captured updates repeat the hooks, and noise follows the count of replays.
TEST(Hooks, ReplaysEqualEagerSteps) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  std::vector<std::vector<std::vector<double>>> results;
  for (const bool replay : {false, true}) {
    Model model;
    model.to(gpu);
    MomentumSGD rule(0.1);
    rule.setup(model);
    rule.add_hook("lasso", Lasso(0.01));
    rule.add_hook("noise", GradientNoise(0.01));
    rule.add_hook("bounds", gradient_hard_clipping(-0.2, 0.2));
    catena::testing::set_gradients(model.parameters(), 1);
    const Array kept = rule.layout().arenas()[0].gradient().memory.copy();
    const auto step = [&] {
      rule.layout().arenas()[0].gradient().memory.assign(kept);
      rule.update();
    };
    cuda::Graph graph;
    for (int t = 0; t < 6; ++t) {
      if (replay && t == 2) {
        rule.prepare_for_capture();
        graph = cuda::Graph::capture(gpu, step);
      }
      if (graph.defined())
        graph.launch();
      else
        step();
    }
    results.push_back(catena::testing::all_values(model.parameters()));
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace catena::optimizers
