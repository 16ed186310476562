// Every rule must learn a linear problem: 10 inputs, 2 classes, batches of 32, 100 steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/lion.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/nesterov_ag.h"
#include "catena/optimizers/rmsprop.h"
#include "catena/optimizers/rmsprop_graves.h"
#include "catena/optimizers/sgd.h"
#include "catena/optimizers/smorms3.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

namespace F = catena::functions;

struct LinearModel : FunctionSet {
  F::Linear l{10, 2};
  CATENA_FUNCTIONS(l)
};

// Accuracy on fresh samples after 100 steps on samples of a random linear classifier.
double accuracy_after_training(Optimizer& optimizer, Device device, uint64_t seed) {
  RandomState random(seed);
  DeviceScope scope(device);
  const Array W = random.uniform({2, 10}, -1, 1, {dtype::float32, device});
  const auto samples = [&] {
    const Array x = random.uniform({32, 10}, -1, 1, {dtype::float32, device});
    const Array y = F::linear(x, W).data();
    return std::pair(x, argmax(y, 1).astype(dtype::int32));
  };
  LinearModel model;
  model.to(device);
  optimizer.setup(model);
  for (int step = 0; step < 100; ++step) {
    const auto [x, t] = samples();
    optimizer.zero_grads();
    F::softmax_cross_entropy(model.l(Variable(x)), t).backward();
    optimizer.update();
  }
  const auto [x, t] = samples();
  return F::accuracy(model.l(Variable(x)), t).data().item<double>();
}

// One optimizer for each row of the rules' table, by the row's name.
struct Learner {
  const char* rule;
  std::unique_ptr<Optimizer> (*make)();
};
template <class Rule>
std::unique_ptr<Optimizer> with_rate() {
  return std::make_unique<Rule>(0.1);
}
const Learner kLearners[] = {
    {"SGD", with_rate<SGD>},
    {"MomentumSGD", with_rate<MomentumSGD>},
    {"Adam", with_rate<Adam>},
    {"AdamW", with_rate<AdamW>},
    {"LARS", [] { return std::unique_ptr<Optimizer>(new LARS(1, {.trust = 0.1})); }},
    {"AdaGrad", with_rate<AdaGrad>},
    {"RMSprop", with_rate<RMSprop>},
    {"RMSpropGraves", with_rate<RMSpropGraves>},
    {"NesterovAG", with_rate<NesterovAG>},
    {"AdaDelta", [] { return std::unique_ptr<Optimizer>(new AdaDelta(0.95, 1e-5)); }},
    {"SMORMS3", with_rate<SMORMS3>},
    {"Lion", with_rate<Lion>},
    {"LAMB", with_rate<LAMB>},
};

TEST(Convergence, EveryRuleLearnsALinearProblem) {
  for (const OptimizerRule& rule : optimizer_rules()) {
    const auto* learner = std::ranges::find(kLearners, std::string(rule.name), &Learner::rule);
    ASSERT_NE(learner, std::end(kLearners)) << rule.name << " is not in kLearners";
    for (const Device device : catena::testing::test_devices()) {
      double best = 0;
      for (uint64_t seed = 0; seed < 10 && best <= 0.9; ++seed)
        best = std::max(best, accuracy_after_training(*learner->make(), device, seed));
      EXPECT_GT(best, 0.9) << rule.name << " on " << device.name();
    }
  }
}

}  // namespace
}  // namespace catena::optimizers
