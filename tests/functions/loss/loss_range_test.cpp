// Losses of confident scores, and of 16-bit floats whose sums do not fit into their dtype.
#include <limits>

#include "catena/functions/activation/softmax.h"
#include "catena/functions/loss.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class LossRange : public OnDevice {
 protected:
  Array filled(const Shape& shape, double value, Dtype dtype) const {
    return full(shape, value, {dtype, device()});
  }
};

TEST_P(LossRange, ConfidentScoresKeepTheirDigits) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
    const double tolerance = dtype == Dtype::kFloat16 ? 2e-3 : 1e-6;
    for (const double size : {4., 8., 12., 15.}) {
      if (dtype == Dtype::kFloat16 && size > 8) continue;
      for (const int label : {0, 1}) {
        const Variable x(filled({1}, label == 1 ? size : -size, dtype));
        const Array t = filled({1}, label, Dtype::kInt32);
        const Variable loss = F::sigmoid_cross_entropy(x, t);
        loss.backward({.create_graph = true});
        const double expected = std::log1p(std::exp(-size)), slope = 1 / (1 + std::exp(size));
        EXPECT_NEAR(loss.data().item<double>() / expected, 1, tolerance) << dtype << size;
        EXPECT_NEAR(x.grad().item<double>() / (label == 1 ? -slope : slope), 1, tolerance)
            << dtype << size;
        const Variable gx = x.grad_variable();
        gx.backward();
        EXPECT_NEAR(x.grad().item<double>() / (slope * (1 - slope)), 1, 2 * tolerance)
            << dtype << size;
      }
    }
  }
}

TEST_P(LossRange, InfiniteScoresOfTheRightSignCostNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const Variable x(array({inf, -inf}).to(device()));
  const Variable loss = F::sigmoid_cross_entropy(x, array({1, 0}).to(device()));
  loss.backward();
  EXPECT_EQ(loss.data().item<double>(), 0);
  EXPECT_EQ(testing::difference(x.grad(), zeros_like(x.data())), "");
}

// The loss is finite, and equal to that without the class, or element, that counts nothing.
TEST_P(LossRange, InfiniteLossesThatWeighNothingCountNothing) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto expect_loss = [](const char* name, double expected, const Variable& x,
                              const Variable& loss) {
    EXPECT_NEAR(loss.data().item<double>(), expected, 1e-12) << name;
    loss.backward();
    EXPECT_TRUE(all(isfinite(x.grad())).item<bool>()) << name;
  };
  const auto scores = [&](const Array& a) { return Variable(a.to(device())); };
  const Array masked = array({{1., -kInf, 0.}});
  const double rest = std::log(1 + std::exp(1.)), mean = rest - 0.5;
  const Variable p(array({{0.5, 0., 0.5}}).to(device()));
  Variable x = scores(masked);
  expect_loss("distributions", mean, x, F::softmax_cross_entropy(x, p));
  EXPECT_NEAR(p.grad()(0, 2).item<double>(), rest, 1e-12);
  x = scores(masked);
  expect_loss("kl_divergence", mean - std::log(2.), x, F::kl_divergence(F::log_softmax(x), p));
  const Array weight = array({1., 0., 1.}).to(device()), label = array({0}).to(device());
  x = scores(masked);
  expect_loss(
      "negative_log_likelihood", 0, x,
      F::negative_log_likelihood(F::log_softmax(x), array({1}).to(device()),
                                 {.reduction = F::Reduction::kSum, .class_weight = weight}));
  for (const bool in_place : {false, true}) {
    x = scores(masked);
    const double smooth = 0.9 * (rest - 1) + 0.1 / 3 * (2 * rest - 1);
    expect_loss(
        "smoothing", smooth, x,
        F::softmax_cross_entropy(
            in_place ? x * 1.0 : x, label,
            {.class_weight = weight, .label_smoothing = 0.1, .gradient_in_place = in_place}));
  }
  const Array binary = array({-kInf, kInf, 0.}), t = array({0., 1., 0.5}).to(device());
  x = scores(binary);
  const auto sum = F::Reduction::kSum;
  expect_loss("sigmoid", std::log(2.), x, F::sigmoid_cross_entropy(x, t, {.reduction = sum}));
  x = scores(binary);
  expect_loss("bernoulli", std::log(2.), x, F::bernoulli_nll(t, x, sum));
  x = scores(binary);
  expect_loss("focal", std::log(2.) / 2, x, F::focal_loss(x, t, 0.5, 0, sum));
  x = scores(array({-kInf, 0.}));
  expect_loss("pos_weight", 0, x,
              F::sigmoid_cross_entropy(x, array({1, 1}).to(device()),
                                       {.reduction = sum, .pos_weight = array({0.}).to(device())}));
}

TEST_P(LossRange, SigmoidCrossEntropyOf16BitsAddsUpWide) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    const Variable x(filled({1000, 100}, 0, dtype));
    const Variable loss = F::sigmoid_cross_entropy(x, filled({1000, 100}, 1, Dtype::kInt32), true);
    EXPECT_NEAR(loss.data().item<double>(), std::log(2.), 3e-3) << dtype;
    loss.set_grad(filled({}, 1024, dtype));
    loss.backward();
    EXPECT_NEAR(x.grad()(0, 0).item<double>(), -0.5 * 1024 / 1e5, 3e-5) << dtype;
  }
}

TEST_P(LossRange, MeanSquaredErrorOf16BitsAddsUpWide) {
  const auto error = [&](int64_t n, double difference) {
    return F::mean_squared_error(filled({n}, difference, Dtype::kFloat16),
                                 filled({n}, 0, Dtype::kFloat16));
  };
  EXPECT_NEAR(error(4, 200).data().item<double>(), 40000, 32);
  EXPECT_EQ(error(70000, 1).data().item<double>(), 1);
}

// 2 / size vanishes in float16, and 2 gy overflows.
TEST_P(LossRange, FactorsOfGradientsOf16BitsMayLeaveTheirRange) {
  const struct {
    int64_t n;
    double difference, gy, expected;
  } cases[] = {{1 << 20, 4096, 16, 0.125}, {1, 0.25, 60000, 30000}};
  for (const auto& c : cases) {
    for (const bool create_graph : {false, true}) {
      const Variable x0(filled({c.n}, c.difference, Dtype::kFloat16));
      const Variable x1(filled({c.n}, 0, Dtype::kFloat16));
      const Variable loss = F::mean_squared_error(x0, x1);
      loss.set_grad(filled({}, c.gy, Dtype::kFloat16));
      loss.backward({.create_graph = create_graph});
      EXPECT_EQ(x0.grad()(0).item<double>(), c.expected) << create_graph;
      EXPECT_EQ(x1.grad()(0).item<double>(), -c.expected) << create_graph;
    }
  }
}

CATENA_ON_DEVICES(LossRange);

}  // namespace
}  // namespace catena
