// Batch normalization in float32 where the mean is far above the deviation, against float64.

#include "catena/functions/normalization.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class BatchNormalizationDigits : public OnDevice {};

struct Passes {
  Array y, gx, g_gamma, second;  // second: a gradient of a sum of the first gradient
};

Passes run(const Array& x_values, const Array& g, const Array& b, const Array& gy) {
  const auto forward = [&](const Variable& x, const Variable& gamma) {
    return F::batch_normalization(x, gamma, Variable(b), {.eps = 1e-6});
  };
  const Variable x(x_values), gamma(g);
  const Variable y = forward(x, gamma);
  y.set_grad(gy);
  y.backward();
  const Variable again(x_values), of_again(g);
  const Variable weighted = F::sum(forward(again, of_again) * Variable::constant(gy));
  weighted.backward({.create_graph = true});
  const Variable first = again.grad_variable();
  again.set_grad(Array());
  F::sum(first * Variable::constant(gy * gy)).backward();
  return {y.data(), x.grad(), gamma.grad(), again.grad()};
}

void expect_near(const Array& got, const Array& expected, double share, const char* what) {
  const double largest = amax(absolute(expected)).item<double>();
  EXPECT_EQ(testing::difference(got.astype(Dtype::kFloat64), expected, share * largest, 0), "")
      << what;
}

// A mean of 1e4 and a deviation of 0.01: the rounded mean alone would cost two digits of y.
TEST_P(BatchNormalizationDigits, AreThoseOfX) {
  const Array x = draw({40, 3, 6, 5}, 1e4 - 0.02, 1e4 + 0.02, 1, Dtype::kFloat32);
  const Array g = draw({3}, 0.5, 2, 2, Dtype::kFloat32), b = draw({3}, -1, 1, 3, Dtype::kFloat32);
  const Array gy = draw({40, 3, 6, 5}, -1, 1, 4, Dtype::kFloat32);
  const auto wide = [](const Array& a) { return a.astype(Dtype::kFloat64); };
  const Passes narrow = run(x, g, b, gy), expected = run(wide(x), wide(g), wide(b), wide(gy));
  expect_near(narrow.y, expected.y, 1e-5, "y");
  expect_near(narrow.gx, expected.gx, 1e-5, "gx");
  expect_near(narrow.g_gamma, expected.g_gamma, 1e-5, "g_gamma");
  expect_near(narrow.second, expected.second, 1e-4, "second order");
}

CATENA_ON_DEVICES(BatchNormalizationDigits);

}  // namespace
}  // namespace catena
