// gaussian: the noise of each dtype and call, what is saved, and captured graphs.
#include "catena/functions/noise/gaussian.h"

#include "catena/core/graph.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Gaussian : public OnDevice {};

// The gradient is of the numbers that the forward call drew.
TEST_P(Gaussian, DrawsTheSameNoiseBackwardInEveryDtype) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat64}) {
    SCOPED_TRACE(dtype);
    const Variable mean(draw({6, 7}, -1, 1, 1, dtype)), ln_var(draw({6, 7}, -1, 1, 2, dtype));
    random::seed(3);
    const Variable y = F::gaussian(mean, ln_var);
    EXPECT_EQ(y.dtype(), dtype);
    random::normal({9}, 0, 1, {dtype, device()});  // others draw in between
    y.set_grad(ones_like(y.data()));
    y.backward();
    random::seed(3);
    const Array eps = random::normal({6, 7}, 0, 1, {dtype, device()}).astype(Dtype::kFloat64);
    const Array wide_mean = mean.data().astype(Dtype::kFloat64);
    const Array noise = exp(ln_var.data().astype(Dtype::kFloat64) * 0.5) * eps;
    const double error = dtype == Dtype::kFloat64   ? 1e-13
                         : dtype == Dtype::kFloat32 ? 1e-5
                         : dtype == Dtype::kFloat16 ? 1e-2
                                                    : 1e-1;
    EXPECT_NO_THROW(assert_allclose(y.data(), wide_mean + noise, error, error));
    EXPECT_NO_THROW(assert_allclose(ln_var.grad(), noise * 0.5, error, error));
    EXPECT_EQ(testing::difference(mean.grad(), ones_like(mean.data())), "");
  }
}

TEST_P(Gaussian, HasTheMeanAndVarianceOfItsOperands) {
  random::seed(7);
  const Shape shape{200, 200};
  const Array mean = full(shape, 3.0, {Dtype::kFloat32, device()}),
              ln_var = full(shape, 1.2, {Dtype::kFloat32, device()});
  const Variable y = F::gaussian(mean, ln_var), other = F::gaussian(mean, ln_var);
  EXPECT_NE(testing::difference(y.data(), other.data()), "");
  const std::vector<double> values = y.data().to_vector<double>();
  double total = 0, square = 0;
  for (const double v : values) total += v / 40000;
  for (const double v : values) square += (v - 3) * (v - 3) / 40000;
  EXPECT_NEAR(total, 3, 0.05);                   // six deviations
  EXPECT_NEAR(square / std::exp(1.2), 1, 0.05);  // seven
}

CATENA_ON_DEVICES(Gaussian);

// Each replay draws other noise, forward and backward the same.
TEST(GaussianGraph, Captures) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  const Array mean = zeros({40, 50}, {Dtype::kFloat32, gpu});
  const Variable ln_var(zeros_like(mean));
  Array result, gradient;
  const auto step = [&] {
    const Variable y = F::gaussian(mean, ln_var);
    F::sum(y).backward();
    result = y.data();
    gradient = ln_var.grad();
  };
  step();
  cuda::Graph graph = cuda::Graph::capture(gpu, step);
  graph.launch();
  const Array first = result.copy();
  EXPECT_NO_THROW(assert_allclose(gradient, first * 0.5f, 1e-6, 1e-6));
  graph.launch();
  EXPECT_NE(testing::difference(first, result), "");
  EXPECT_NO_THROW(assert_allclose(gradient, result * 0.5f, 1e-6, 1e-6));
}

}  // namespace
}  // namespace catena
