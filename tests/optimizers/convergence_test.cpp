// Every rule must learn a linear problem: 10 inputs, 2 classes, batches of 32, 100 steps.
#include <gtest/gtest.h>

#include <memory>

#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/functions/connection.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
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

TEST(Convergence, EveryRuleLearnsALinearProblem) {
  for (const Device device : catena::testing::test_devices()) {
    for (const int rule : {0, 1, 2}) {
      double best = 0;
      for (uint64_t seed = 0; seed < 10 && best <= 0.9; ++seed) {
        std::unique_ptr<Optimizer> optimizer;
        if (rule == 0) optimizer = std::make_unique<SGD>(0.1);
        if (rule == 1) optimizer = std::make_unique<MomentumSGD>(0.1);
        if (rule == 2) optimizer = std::make_unique<Adam>(0.1);
        best = std::max(best, accuracy_after_training(*optimizer, device, seed));
      }
      EXPECT_GT(best, 0.9) << "rule " << rule << " on " << device.name();
    }
  }
}

}  // namespace
}  // namespace catena::optimizers
