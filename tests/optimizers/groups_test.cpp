// Groups of parameters against two optimizers and against numbers worked out by hand.
#include "catena/optimizers/groups.h"

#include <gtest/gtest.h>

#include "catena/array/math.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/lion.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::all_values;
using catena::testing::copied_state;
using catena::testing::expect_near;
using catena::testing::Model;
using catena::testing::set_gradients;
using catena::testing::test_devices;

TEST(Groups, PatternsHaveStars) {
  EXPECT_TRUE(fits_pattern("/l1/b", "*/b"));
  EXPECT_TRUE(fits_pattern("/l1/b", "/l1/*"));
  EXPECT_TRUE(fits_pattern("/l1/b", "*"));
  EXPECT_TRUE(fits_pattern("/l1/b", "/*1*b"));
  EXPECT_TRUE(fits_pattern("", "*"));
  EXPECT_TRUE(fits_pattern("/b", "/b"));
  EXPECT_FALSE(fits_pattern("/l1/b", "b"));
  EXPECT_FALSE(fits_pattern("/l1/bb", "*/b"));
  EXPECT_FALSE(fits_pattern("/l1/b", "/l2/*"));
  EXPECT_FALSE(fits_pattern("",
                            ""
                            "a"));
}

using MakeRule = std::unique_ptr<Optimizer> (*)(double rate_factor, double decay_factor);
const MakeRule kRules[] = {
    [](double r, double) -> std::unique_ptr<Optimizer> { return std::make_unique<SGD>(0.1 * r); },
    [](double r, double) -> std::unique_ptr<Optimizer> {
      return std::make_unique<MomentumSGD>(0.1 * r);
    },
    [](double r, double) -> std::unique_ptr<Optimizer> { return std::make_unique<Adam>(0.1 * r); },
    [](double r, double d) -> std::unique_ptr<Optimizer> {
      return std::make_unique<AdamW>(0.1 * r, AdamWOptions{.decay = 0.2 * d});
    },
    [](double r, double d) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Lion>(0.1 * r, LionOptions{.decay = 0.2 * d});
    },
    [](double r, double d) -> std::unique_ptr<Optimizer> {
      return std::make_unique<LAMB>(0.1 * r, LAMBOptions{.decay = 0.2 * d});
    },
};
const Dtype kDtypes[] = {dtype::float32, dtype::float64, dtype::bfloat16};

// Biases at half the rate and without decay: as with an optimizer for the weights and another for
// the biases.
TEST(Groups, AreLikeTwoOptimizers) {
  for (const MakeRule make : kRules) {
    for (const Dtype dtype : kDtypes) {
      for (const Device device : test_devices()) {
        for (const bool prepared : {false, true}) {
          Model grouped(dtype), split(dtype);
          grouped.to(device);
          split.to(device);
          const auto rule = make(1, 1), weights = make(1, 1), biases = make(0.5, 0);
          rule->setup(grouped);
          rule->add_group("biases", {"*/b"}, {.rate = 0.5, .decay = 0});
          rule->add_hook("decay", weight_decay(0.1));
          weights->setup({split.l1.W, split.l2.W});
          weights->add_hook("decay", weight_decay(0.1));
          biases->setup({split.l1.b, split.l2.b});
          if (prepared) rule->prepare_for_capture();
          for (int64_t t = 1; t <= 4; ++t) {
            for (Model* m : {&grouped, &split}) set_gradients(m->parameters(), t);
            for (Optimizer* r : {rule.get(), weights.get(), biases.get()}) r->update();
          }
          EXPECT_EQ(all_values(grouped.parameters()), all_values(split.parameters()))
              << dtype << " " << device;
          EXPECT_EQ(rule->t(), 4);
        }
      }
    }
  }
}

TEST(Groups, MayBeAddedBeforeSetupAndTheLastOneCounts) {
  Model model, twin;
  SGD rule(1), plain(1);
  rule.add_group("all", {"*"}, {.rate = 0.5});
  rule.add_group("biases", {"*/b"}, {.rate = 0});
  rule.setup(model);
  plain.setup(twin);
  step(rule, model, 1);
  step(plain, twin, 1);
  const Model before;
  EXPECT_EQ(model.l1.b.data().to_vector<double>(), before.l1.b.data().to_vector<double>());
  const auto start = before.l1.W.data().to_vector<double>(),
             half = model.l1.W.data().to_vector<double>(),
             full = twin.l1.W.data().to_vector<double>();
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_NEAR(half[i] - start[i], (full[i] - start[i]) / 2, 1e-6);
  ASSERT_EQ(rule.groups().size(), 2u);
  EXPECT_EQ(rule.groups()[1].name, "biases");
}

// Nothing of them moves, not even by momentum or decay, and they are as before when they thaw.
TEST(Groups, FrozenParametersStay) {
  for (const MakeRule make : kRules) {
    Model model, twin;
    const auto rule = make(1, 1), plain = make(1, 1);
    rule->setup(model);
    plain->setup(twin);
    rule->add_group("body", {"/l1/*"}, {});
    step(*rule, model, 1);
    step(*plain, twin, 1);
    EXPECT_EQ(all_values(model.parameters()), all_values(twin.parameters()));
    rule->set_group("body", {.frozen = true});
    const auto frozen = model.l1.W.data().to_vector<double>();
    Arrays states;
    for (const Array& a : rule->state_of(model.l1.W)) states.push_back(a.copy());
    for (int64_t t = 2; t <= 4; ++t) {
      step(*rule, model, t);
      step(*plain, twin, t);
    }
    EXPECT_EQ(model.l1.W.data().to_vector<double>(), frozen);
    for (size_t k = 0; k < states.size(); ++k)
      EXPECT_EQ(rule->state_of(model.l1.W)[k].to_vector<double>(), states[k].to_vector<double>());
    EXPECT_EQ(model.l2.W.data().to_vector<double>(), twin.l2.W.data().to_vector<double>());
    EXPECT_EQ(rule->t(), 4);
    rule->set_group("body", {});
    step(*rule, model, 5);
    EXPECT_NE(model.l1.W.data().to_vector<double>(), frozen);
  }
}

TEST(Groups, FrozenParametersNeedNoGradient) {
  functions::Linear layer(3, 2);
  SGD rule(0.1);
  rule.setup(layer);
  rule.add_group("bias", {"/b"}, {.frozen = true, .gradients = false});
  const auto pass = [&] {
    rule.zero_grads();
    functions::sum(layer(ones({4, 3}, dtype::float32))).backward();
    return layer.b.state()->has_gradient();
  };
  EXPECT_FALSE(pass());
  EXPECT_TRUE(layer.W.state()->has_gradient());
  rule.set_group("bias", {});
  EXPECT_TRUE(pass());
}

// One norm over all groups, the frozen ones left out.
TEST(Groups, AreClippedTogether) {
  for (const Device device : test_devices()) {
    Model model;
    model.to(device);
    SGD rule(1);
    rule.setup(model);
    rule.add_group("biases", {"*/b"}, {.rate = 0.5});
    rule.add_group("frozen", {"/l2/W"}, {.frozen = true});
    set_gradients(model.parameters(), 1);
    double squares = 0;
    for (const Parameter& p : Parameters{model.l1.W, model.l1.b, model.l2.b})
      for (const double g : p.grad().to_vector<double>()) squares += g * g;
    const double norm = std::sqrt(squares);
    EXPECT_NEAR(rule.compute_grads_norm(), norm, 1e-6);
    rule.add_hook("clip", gradient_clipping(norm / 2));
    const auto w = model.l1.W.data().to_vector<double>(), b = model.l1.b.data().to_vector<double>();
    const auto gw = model.l1.W.grad().to_vector<double>(),
               gb = model.l1.b.grad().to_vector<double>();
    rule.update();
    for (size_t i = 0; i < w.size(); ++i)
      EXPECT_NEAR(model.l1.W.data().to_vector<double>()[i], w[i] - gw[i] / 2, 1e-6);
    for (size_t i = 0; i < b.size(); ++i)
      EXPECT_NEAR(model.l1.b.data().to_vector<double>()[i], b[i] - gb[i] / 4, 1e-6);
  }
}

// Decay that must be added to the gradients in memory, because a norm follows it.
TEST(Groups, DecayByTheirFactorsBeforeANorm) {
  Model model, twin;
  SGD rule(0.1), weights(0.1), biases(0.1);
  rule.setup(model);
  rule.add_group("biases", {"*/b"}, {.decay = 0});
  rule.add_hook("decay", weight_decay(0.5));
  rule.add_hook("clip", gradient_clipping(1e9));
  weights.setup({twin.l1.W, twin.l2.W});
  weights.add_hook("decay", weight_decay(0.5));
  biases.setup({twin.l1.b, twin.l2.b});
  step(rule, model, 1);
  set_gradients(twin.parameters(), 1);
  for (SGD* r : {&weights, &biases}) r->update();
  expect_near(all_values(model.parameters()), all_values(twin.parameters()), 1e-6);
}

TEST(Groups, AreSavedByNameAndLoaded) {
  Model model, other;
  AdamW rule(0.1), resumed(0.3);
  for (AdamW* r : {&rule, &resumed}) r->add_group("no decay", {"*/b"}, {});
  rule.setup(model);
  resumed.setup(other);
  rule.set_group("no decay", {.rate = 0.25, .decay = 0});
  step(rule, model, 1);
  const auto saved = copied_state(rule);
  EXPECT_TRUE(saved.contains("m/l1/b") && saved.contains("no decay/rate"));
  other.copy_parameters_from(model);
  resumed.load_state(saved);
  EXPECT_EQ(resumed.groups()[0].options.rate, 0.25);
  EXPECT_EQ(resumed.groups()[0].options.decay, 0);
  for (int64_t t = 2; t <= 3; ++t) {
    step(rule, model, t);
    step(resumed, other, t);
  }
  EXPECT_EQ(all_values(other.parameters()), all_values(model.parameters()));
}

TEST(Groups, FollowAModelThatMoves) {
  Model model, still;
  Adam moving(0.1), reference(0.1);
  for (Adam* r : {&moving, &reference}) r->add_group("biases", {"*/b"}, {.rate = 0.5});
  moving.setup(model);
  reference.setup(still);
  for (int64_t t = 1; t <= 4; ++t) {
    if (t == 3) model.l1.to(cpu(1));
    step(moving, model, t);
    step(reference, still, t);
  }
  EXPECT_EQ(all_values(model.parameters()), all_values(still.parameters()));
}

// A rule as users write them reads the rate of the group in lr().
struct Plain : Optimizer {
  Plain() : Optimizer("lr", 0.1) {}
  void update_one(const Array& p, const Array& g, const Arrays&) override { p -= lr() * g; }
};

TEST(Groups, OfRulesThatUpdateParameterByParameter) {
  Model model, twin;
  Plain rule;
  SGD sgd(0.1);
  for (Optimizer* r : {static_cast<Optimizer*>(&rule), static_cast<Optimizer*>(&sgd)}) {
    r->add_group("biases", {"*/b"}, {.rate = 0.5, .decay = 0});
    r->add_group("frozen", {"/l1/W"}, {.frozen = true});
    r->add_hook("decay", weight_decay(0.1));
  }
  rule.setup(model);
  sgd.setup(twin);
  for (Optimizer* r : {static_cast<Optimizer*>(&rule), static_cast<Optimizer*>(&sgd)})
    r->freeze("/l2/b");
  step(rule, model, 1);
  step(sgd, twin, 1);
  EXPECT_EQ(rule.lr(), 0.1);
  expect_near(all_values(model.parameters()), all_values(twin.parameters()), 1e-6);
  EXPECT_EQ(model.l1.W.data().to_vector<double>(), Model().l1.W.data().to_vector<double>());
}

TEST(Groups, LarsScalesTheRateOfEachParameter) {
  Model model, twin;
  LARS rule(0.5, {.trust = 0.1}), halved(0.25, {.trust = 0.1});
  rule.add_group("all", {"*"}, {.rate = 0.5});
  rule.setup(model);
  halved.setup(twin);
  for (int64_t t = 1; t <= 3; ++t) {
    step(rule, model, t);
    step(halved, twin, t);
  }
  expect_near(all_values(model.parameters()), all_values(twin.parameters()), 1e-6);
}

struct OverArenas : Optimizer {
  OverArenas() : Optimizer("lr", 0.1) {}
  bool updates_arenas() const override { return true; }
};

TEST(Groups, AreChecked) {
  Model model;
  SGD rule(0.1);
  rule.setup(model);
  expect_contains(error_of<ValueError>([&] { rule.add_group("g", {"*/gamma"}, {}); }),
                  {"group 'g'", "no parameter", "*/gamma", "/l1/W, /l1/b"});
  EXPECT_TRUE(rule.groups().empty());
  rule.add_group("g", {"*/b"}, {});
  expect_contains(error_of<ValueError>([&] { rule.add_group("g", {"*"}, {}); }), {"already"});
  expect_contains(error_of<ValueError>([&] { rule.add_group("a/b", {"*"}, {}); }), {"'a/b'"});
  expect_contains(error_of<ValueError>([&] { rule.add_group("h", {"*"}, {.rate = -1}); }),
                  {"group 'h'", "rate -1"});
  expect_contains(error_of<ValueError>([&] { rule.set_group("h", {}); }),
                  {"no group 'h'", "there are: g"});
  expect_contains(error_of<ValueError>([] { OverArenas().add_group("g", {"*"}, {}); }),
                  {"add_group", "does not read groups"});
  SGD other(0.1);
  other.add_group("g", {"*/gamma"}, {});
  expect_contains(error_of<ValueError>([&] { other.setup(model); }), {"no parameter"});
  EXPECT_FALSE(other.is_set_up());
}

}  // namespace
}  // namespace catena::optimizers
