// What rules, schedules and hooks do when none of their numbers is given.
#include "defaults.h"

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/lion.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/moving_average.h"
#include "catena/optimizers/nesterov_ag.h"
#include "catena/optimizers/rmsprop.h"
#include "catena/optimizers/rmsprop_graves.h"
#include "catena/optimizers/schedules.h"
#include "catena/optimizers/sgd.h"
#include "catena/optimizers/smorms3.h"

namespace catena::optimizers {
namespace {

using Row = catena::testing::DefaultRow;
using Operands = Row::Operands;

// A parameter after three steps, by gradients that are multiplied by a number.
Array after(Optimizer& rule, const Array& gradients, double times) {
  const Parameter p(linspace(1, 2, 8));
  rule.setup({p});
  for (int64_t t = 0; t < 3; ++t) {
    p.set_grad(gradients(t) * times);
    rule.update();
  }
  return p.data();
}
template <class Rule>
Row row(const char* name, double times = 1) {
  return {name, [=](const Operands& in) {
            Rule rule;
            return after(rule, in("gradients"), times);
          }};
}

TEST(Defaults, OfRules) {
  catena::testing::expect_defaults("optimizers",
                                   {row<SGD>("SGD"),
                                    row<MomentumSGD>("MomentumSGD"),
                                    row<NesterovAG>("NesterovAG"),
                                    row<Adam>("Adam"),
                                    {"Adam.corrected_eps",
                                     [](const Operands& in) {
                                       Adam rule(0.001, {.corrected_eps = true});
                                       return after(rule, in("gradients"), 1);
                                     }},
                                    row<AdamW>("AdamW"),
                                    row<AdaGrad>("AdaGrad"),
                                    row<RMSprop>("RMSprop"),
                                    row<RMSpropGraves>("RMSpropGraves"),
                                    row<AdaDelta>("AdaDelta"),
                                    row<SMORMS3>("SMORMS3"),
                                    row<Lion>("Lion"),
                                    row<LARS>("LARS", 1e-9),
                                    row<LAMB>("LAMB")},
                                   1e-12);
}

Array rates(const Schedule& schedule) {
  std::vector<double> list;
  for (int64_t step = 0; step < 20; ++step) list.push_back(schedule(step));
  return array(list);
}

// The noise of the first ten updates.
Array noise(const Hook& hook) {
  const Parameter p(zeros({40000}, dtype::float64));
  SGD rule(1);
  rule.setup({p});
  rule.add_hook("noise", hook);
  Arrays added;
  for (int t = 0; t < 10; ++t) {
    p.data().fill(0);
    p.set_grad(zeros_like(p.data()));
    rule.update();
    added.push_back(p.data().copy());
  }
  return stack(added);
}

TEST(Defaults, OfSchedulesAndHooks) {
  catena::testing::expect_defaults(
      "schedules",
      {{"one_cycle", [](const Operands&) { return rates(one_cycle(0.5, 20)); }},
       {"polynomial", [](const Operands&) { return rates(polynomial(1, 0, 20)); }},
       {"LossScaleOptions",
        [](const Operands&) {
          const LossScaleOptions o = DynamicLossScale().options();
          return array({o.initial, o.growth, o.backoff, double(o.interval), o.least, o.most});
        }},
       {"MovingAverage",
        [](const Operands&) {
          const Parameter p(ones({3}, dtype::float64));
          SGD rule(1);
          rule.setup({p});
          const auto average = add_moving_average(rule);
          EXPECT_EQ(average->decay(), MovingAverage().decay());
          p.set_grad(ones({3}, dtype::float64));
          rule.update();
          return average->of(p).copy();
        }}},
      1e-12);
  const Array added = noise(GradientNoise(1));
  EXPECT_EQ(catena::testing::difference(added, noise(GradientNoise(1, 0.55, /*seed=*/0))), "");
  catena::testing::expect_defaults("noise",
                                   {{"GradientNoise",
                                     [&](const Operands&) {
                                       const Array deviations = sqrt(mean(square(added), 1));
                                       return stack({deviations(0), deviations(9)});
                                     }}},
                                   0.02);
}

}  // namespace
}  // namespace catena::optimizers
