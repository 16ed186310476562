// Schedules against their formulas, and followed by an optimizer whose numbers are on the device.
#include "catena/optimizers/schedules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "catena/core/graph.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

constexpr double kPi = std::numbers::pi;

TEST(Schedules, MultiStepFallsAtMilestones) {
  const Schedule rate = multi_step(0.4, 0.5, {3, 4, 10});
  const std::vector<std::pair<int64_t, double>> expected{{0, 0.4}, {2, 0.4},   {3, 0.2},   {4, 0.1},
                                                         {9, 0.1}, {10, 0.05}, {999, 0.05}};
  for (const auto& [step, value] : expected) EXPECT_DOUBLE_EQ(rate(step), value) << step;
  EXPECT_DOUBLE_EQ(multi_step(0.4, 0.5, {})(7), 0.4);
}

TEST(Schedules, StepExponentialAndPolynomial) {
  EXPECT_DOUBLE_EQ(step_decay(0.8, 0.5, 10)(29), 0.2);
  EXPECT_DOUBLE_EQ(exponential(0.8, 0.9)(3), 0.8 * 0.729);
  EXPECT_DOUBLE_EQ(polynomial(1, 0.2, 10, 2)(5), 0.2 + 0.8 * 0.25);
  EXPECT_DOUBLE_EQ(polynomial(1, 0.2, 10, 2)(11), 0.2);
  EXPECT_DOUBLE_EQ(polynomial(1, 0.2, 10)(5), 0.6);
}

TEST(Schedules, CosineWithWarmUp) {
  const Schedule rate = linear_warmup(4, cosine(0.4, 0.1, 8));
  EXPECT_DOUBLE_EQ(rate(0), 0.1);
  EXPECT_DOUBLE_EQ(rate(3), 0.4);
  EXPECT_DOUBLE_EQ(rate(4), 0.4);
  EXPECT_NEAR(rate(6), 0.1 + 0.3 * (1 + std::cos(kPi / 4)) / 2, 1e-15);
  EXPECT_NEAR(rate(8), 0.25, 1e-15);
  EXPECT_DOUBLE_EQ(rate(12), 0.1);
}

// With base = 1 / sqrt(size * warmup) the formula of the paper.
TEST(Schedules, InverseSquareRootIsThePapers) {
  const double size = 512, warmup = 4000;
  const Schedule rate = inverse_square_root(1 / std::sqrt(size * warmup), 4000);
  for (const int64_t n : {1, 100, 3999, 4000, 4001, 100000}) {
    const double paper =
        std::pow(size, -0.5) * std::min(std::pow(n, -0.5), double(n) * std::pow(warmup, -1.5));
    EXPECT_NEAR(rate(n - 1), paper, 1e-12 * paper) << n;
  }
}

TEST(Schedules, OneCycleRisesAndFalls) {
  const Schedule rate = one_cycle(1, 100, {.rise = 0.25, .first = 0.1, .last = 0.01});
  EXPECT_DOUBLE_EQ(rate(0), 0.1);
  EXPECT_NEAR(rate(12), 0.1 + 0.9 * (1 - std::cos(kPi * 12 / 24)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(rate(24), 1);
  EXPECT_NEAR(rate(49), 0.001 + 0.999 * (1 + std::cos(kPi * 25 / 75)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(rate(99), 0.001);
  EXPECT_DOUBLE_EQ(rate(1000), 0.001);
  for (int64_t step = 0; step < 99; ++step)
    EXPECT_EQ(rate(step + 1) > rate(step), step < 24) << step;
  // The defaults: from most / 25 over most at 30 % to most / 250,000.
  EXPECT_DOUBLE_EQ(one_cycle(0.5, 1000)(0), 0.02);
  EXPECT_DOUBLE_EQ(one_cycle(0.5, 1000)(299), 0.5);
  EXPECT_DOUBLE_EQ(one_cycle(0.5, 1000)(999), 0.000002);
}

TEST(Schedules, SayWhatIsWrong) {
  expect_contains(error_of<ValueError>([] {
                    multi_step(1, 0.1, {3, 3});
                  }),
                  {"multi_step", "ascend", "got 3 at position 1"});
  expect_contains(error_of<ValueError>([] { multi_step(1, 0.1, {0}); }), {"positive"});
  expect_contains(error_of<ValueError>([] { inverse_square_root(1, 0); }),
                  {"inverse_square_root", "got 0"});
  expect_contains(error_of<ValueError>([] { one_cycle(1, 100, {.rise = 1}); }),
                  {"one_cycle", ".rise = 1"});
  EXPECT_THROW(one_cycle(1, 3), ValueError);
  EXPECT_THROW(cosine(1, 0, 0), ValueError);
}

std::vector<Schedule> schedules() {
  return {multi_step(0.5, 0.5, {2, 4}), step_decay(0.5, 0.5, 2),
          exponential(0.5, 0.9),        linear_warmup(2, cosine(0.5, 0.1, 4)),
          inverse_square_root(0.5, 3),  one_cycle(0.5, 6, {.rise = 0.5}),
          polynomial(0.5, 0.1, 5, 2),   cosine(0.5, 0.1, 6)};
}

// p falls by the sum of the rates, with rates that the kernel reads from the device.
TEST(Schedules, UpdatesWithDeviceValuesFollow) {
  for (const Schedule& rate : schedules()) {
    const Parameter p(zeros({1}, dtype::float64));
    SGD sgd(rate(0));
    sgd.setup({p});
    sgd.prepare_for_capture();
    double sum = 0;
    for (int64_t step = 0; step < 7; ++step) {
      p.set_grad(ones({1}, dtype::float64));
      sgd.set_lr(rate(step));
      sgd.update();
      sum += rate(step);
    }
    EXPECT_NEAR(p.data().item<double>(), -sum, 1e-14);
  }
}

TEST(Schedules, ReplaysFollow) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  for (const Schedule& rate : schedules()) {
    const Parameter p(zeros({1}, {dtype::float64, gpu}));
    SGD sgd(rate(0));
    sgd.setup({p});
    sgd.prepare_for_capture();
    p.set_grad(ones({1}, {dtype::float64, gpu}));
    cuda::Graph graph = cuda::Graph::capture(gpu, [&] { sgd.update(); });
    double sum = 0;
    for (int64_t step = 0; step < 7; ++step) {
      sgd.set_lr(rate(step));
      graph.launch();
      sum += rate(step);
    }
    EXPECT_NEAR(p.data().item<double>(), -sum, 1e-14);
  }
}

}  // namespace
}  // namespace catena::optimizers
