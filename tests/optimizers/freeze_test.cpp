// Parameters and parts of models that updates leave alone.
#include <gtest/gtest.h>

#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

namespace F = catena::functions;
using catena::testing::all_values;
using catena::testing::Model;

struct Net : FunctionSet {
  F::Linear body{4, 5}, head{5, 2};
  CATENA_FUNCTIONS(body, head)
  Net() { body.W.data().fill(0.1); }  // steps are on ones: the relu lets gradients through
  Variable operator()(const Variable& x) { return head(F::relu(body(x))); }
};

void step(Optimizer& rule, Net& net) {
  rule.zero_grads();
  const Array x = ones({3, 4}, {dtype::float32, net.device()});
  F::sum(net(Variable(x))).backward();
  rule.update();
}

TEST(Freeze, LeavesPartsAloneByObjectAndByPath) {
  for (const Device device : catena::testing::test_devices()) {
    for (const bool by_path : {false, true}) {
      Net net;
      net.to(device);
      AdamW rule(0.1);
      rule.setup(net);
      rule.add_hook("decay", weight_decay(0.1));
      const auto body = all_values(net.body.parameters());
      if (by_path)
        rule.freeze("/body");
      else
        rule.freeze(net.body);
      EXPECT_TRUE(rule.is_frozen(net.body.W));
      EXPECT_FALSE(rule.is_frozen(net.head.W));
      const auto head = all_values(net.head.parameters());
      step(rule, net);
      EXPECT_EQ(all_values(net.body.parameters()), body) << device;
      EXPECT_NE(all_values(net.head.parameters()), head);
      EXPECT_FALSE(net.body.W.state()->has_gradient()) << "the gradient was computed";
      for (const Array& state : rule.state_of(net.body.W))
        EXPECT_FALSE(any(not_equal(state, 0.0)).item<bool>());
      if (by_path)
        rule.unfreeze("/body/*");
      else
        rule.unfreeze(net.body);
      EXPECT_FALSE(rule.is_frozen(net.body.W));
      step(rule, net);
      EXPECT_NE(all_values(net.body.parameters()), body);
      EXPECT_TRUE(net.body.W.state()->has_gradient());
    }
  }
}

TEST(Freeze, TakesSingleParametersAndPatterns) {
  Net net;
  SGD rule(0.1);
  rule.setup(net);
  rule.freeze(net.head.W);
  rule.freeze("*/b");
  const auto frozen = all_values({net.head.W, net.head.b, net.body.b});
  const auto free = all_values({net.body.W});
  step(rule, net);
  EXPECT_EQ(all_values({net.head.W, net.head.b, net.body.b}), frozen);
  EXPECT_NE(all_values({net.body.W}), free);
}

// Groups decide what else holds of a parameter, while it is frozen and after.
TEST(Freeze, GoesWithGroups) {
  Net net, reference;
  reference.copy_parameters_from(net);
  MomentumSGD rule(0.1), other(0.1);
  for (Optimizer* each : {static_cast<Optimizer*>(&rule), static_cast<Optimizer*>(&other)})
    each->add_group("slow", {"/body/*"}, {.rate = 0.5});
  rule.setup(net);
  other.setup(reference);
  rule.freeze(net.body);
  rule.set_group("slow", {.rate = 0.25});
  const auto body = all_values(net.body.parameters());
  step(rule, net);
  EXPECT_EQ(all_values(net.body.parameters()), body);
  rule.set_group("slow", {.rate = 0.5});
  rule.unfreeze("/body");
  net.head.copy_parameters_from(reference.head);
  for (const Array& state : rule.state_of(net.head.W)) state.fill(0);
  for (const Array& state : rule.state_of(net.head.b)) state.fill(0);
  step(rule, net);
  step(other, reference);
  EXPECT_EQ(all_values(net.parameters()), all_values(reference.parameters()));
  // What a group freezes stays so.
  rule.set_group("slow", {.frozen = true});
  rule.unfreeze(net.body);
  EXPECT_TRUE(rule.is_frozen(net.body.W));
}

TEST(Freeze, SurvivesMovesAndSetup) {
  Net net;
  SGD rule(0.1);
  rule.setup(net);
  rule.freeze(net.body);
  net.to(cpu(1));
  const auto body = all_values(net.body.parameters());
  step(rule, net);
  rule.setup(net);
  step(rule, net);
  EXPECT_EQ(all_values(net.body.parameters()), body);
  rule.setup(net.head);  // forgets the body, which learns with another optimizer
  SGD second(0.1);
  second.setup(net.body);
  step(second, net);
  EXPECT_NE(all_values(net.body.parameters()), body);
}

TEST(Freeze, SaysWhatIsWrong) {
  Net net, copy = net;
  SGD rule(0.1);
  expect_contains(error_of<ValueError>([&] { rule.freeze("/body"); }), {"freeze", "setup(model)"});
  rule.setup(net);
  expect_contains(error_of<ValueError>([&] { rule.freeze("/tail"); }),
                  {"freeze: no parameter is at '/tail'", "/body/W"});
  expect_contains(error_of<ValueError>([&] { rule.unfreeze(copy.body); }),
                  {"unfreeze: the optimizer does not hold", "not of a copy"});
  EXPECT_THROW(rule.freeze(Parameter()), ValueError);
}

}  // namespace
}  // namespace catena::optimizers
