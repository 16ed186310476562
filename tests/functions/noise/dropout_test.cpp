// Softmax and dropout; the rows of the element-wise table are tested in math_test.cpp.
#include "catena/functions/activation.h"

#include <cmath>

#include "catena/functions/noise.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class ActivationFunctions : public OnDevice {};

TEST_P(ActivationFunctions, SoftmaxOverEveryAxis) {
  const Array x = draw({2, 3, 4}, -3, 3);
  for (int64_t axis : {0, 1, 2, -1}) {
    const Array e = exp(x), expected = e / sum(e, ReduceOptions(axis, true));
    EXPECT_EQ(testing::difference(F::softmax(x, axis).data(), expected, 1e-12, 1e-12), "");
    EXPECT_EQ(testing::difference(F::log_softmax(x, axis).data(), log(expected), 1e-12, 1e-12), "");
    for (const Array& input : {x, padded(x), transposed_layout(x)}) {
      expect_gradients([&](const Variable& v) { return F::softmax(v, axis); }, input, "softmax");
      expect_gradients([&](const Variable& v) { return F::log_softmax(v, axis); }, input,
                       "log_softmax");
    }
  }
  EXPECT_EQ(testing::difference(F::softmax(x).data(), F::softmax(x, 1).data()), "");
  EXPECT_EQ(F::softmax(draw({0, 3})).shape(), (Shape{0, 3}));
}

TEST_P(ActivationFunctions, SoftmaxOfLargeNumbers) {
  const Array x = array({{1e4, 0.0}, {-1e4, -1e4}}).to(device());
  const std::vector<double> y = F::softmax(x).data().to_vector<double>();
  EXPECT_EQ(y, (std::vector<double>{1, 0, 0.5, 0.5}));
}

TEST_P(ActivationFunctions, SoftmaxRefusesWhatItCannotTake) {
  EXPECT_EQ(message_of<InvalidType>([&] { F::softmax(draw({3})); }),
            "Invalid operation is performed in: Softmax (Forward)\n\nExpect: in_types[0].ndim > "
            "1\nActual: 1 <= 1");
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::softmax(draw({3, 2}, 0, 5, 0, Dtype::kInt32));
            }),
            "Invalid operation is performed in: Softmax (Forward)\n\nExpect: "
            "in_types[0].dtype.kind == f\nActual: i != f");
}

TEST_P(ActivationFunctions, SoftplusWithBeta) {
  const Array x = draw({2, 3}, -2, 2);
  EXPECT_EQ(testing::difference(F::softplus(x, 2.0).data(), log1p(exp(x * 2)) / 2, 1e-12, 1e-12),
            "");
  expect_gradients([](const Variable& v) { return F::softplus(v, 1.5); }, x, "softplus");
  EXPECT_THROW(F::softplus(x, 0.0), ValueError);
}

TEST_P(ActivationFunctions, DropoutKeepsOrScales) {
  random::seed(5);
  const Variable x(draw({50, 40}, 1, 2));
  const Variable y = F::dropout(x, 0.3);
  const std::vector<double> in = x.data().to_vector<double>(), out = y.data().to_vector<double>();
  int kept = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (out[i] == 0) continue;
    ++kept;
    EXPECT_NEAR(out[i], in[i] / 0.7, 1e-12);
  }
  EXPECT_NEAR(kept / 2000.0, 0.7, 0.05);
  y.set_grad(x.data());
  y.backward();  // the same mask
  EXPECT_EQ(testing::difference(x.grad(), y.data()), "");
  const Variable other = F::dropout(x, 0.3);
  EXPECT_NE(testing::difference(other.data(), y.data()), "");
}

TEST_P(ActivationFunctions, DropoutIsDifferentiableTwice) {
  const auto same_mask = [](const Variable& v) {
    random::seed(5);
    return F::dropout(v * v, 0.5);
  };
  expect_gradients(same_mask, draw({3, 4}, 1, 2), "dropout");
  expect_gradients(same_mask, padded(draw({3, 4}, 1, 2)), "dropout, padded");
}

TEST_P(ActivationFunctions, DropoutOutsideTrainingIsTheInput) {
  const Variable x(draw({2, 3}));
  EXPECT_TRUE(same_variable(F::dropout(x, 0.5, false), x));
  EXPECT_EQ(testing::difference(F::dropout(x, 0.0).data(), x.data()), "");
  EXPECT_THROW(F::dropout(x, 1.0), ValueError);
  EXPECT_THROW(F::dropout(x, -0.1), ValueError);
  EXPECT_EQ(F::dropout(Variable(draw({0, 3}))).shape(), (Shape{0, 3}));
}

CATENA_ON_DEVICES(ActivationFunctions);

}  // namespace
}  // namespace catena
