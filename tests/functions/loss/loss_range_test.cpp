// Losses of confident scores, and of 16-bit floats whose sums do not fit into their dtype.
#include <cmath>
#include <limits>

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
