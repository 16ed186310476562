// Methods of arrays are the functions of their names, with all their arguments.
#include <gtest/gtest.h>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/testing.h"

namespace catena {
namespace {

using testing::difference;

// (2, 3, 4) of both signs.
Array sample() { return testing::random_array({2, 3, 4}, -2, 2); }

TEST(ArrayMethods, Rearrange) {
  const Array x = sample();
  const std::vector<double> values = x.to_vector<double>();
  EXPECT_EQ(x.reshape({4, 6}).shape(), (Shape{4, 6}));
  EXPECT_EQ(x.reshape({4, -1}).to_vector<double>(), values);
  EXPECT_TRUE(x.reshape({24}).shares_memory_with(x));
  EXPECT_EQ(x.ravel().shape(), Shape{24});
  EXPECT_EQ(x.ravel().to_vector<double>(), values);
  const Array turned = x.transpose({2, 0, 1}), swapped = x.swapaxes(0, 2);
  EXPECT_EQ(turned.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(swapped.shape(), (Shape{4, 3, 2}));
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t a = i / 12, b = i / 4 % 3, c = i % 4;
    EXPECT_EQ(turned(c, a, b).item<double>(), values[size_t(i)]);
    EXPECT_EQ(swapped(c, b, a).item<double>(), values[size_t(i)]);
  }
  EXPECT_EQ(x.reshape({1, 24, 1}).squeeze(0).shape(), (Shape{24, 1}));
  EXPECT_EQ(x.reshape({1, 24, 1}).squeeze().shape(), Shape{24});
}

TEST(ArrayMethods, Choose) {
  const Array x = sample();
  EXPECT_EQ(difference(x.take({2, 0}, 1), take(x, {2, 0}, 1)), "");
  EXPECT_EQ(x.take({2, 0}, 1)(0, 0, 0).item<double>(), x(0, 2, 0).item<double>());
  const Array bounded = x.clip(-0.5, 1);
  EXPECT_EQ(difference(bounded, maximum(minimum(x, 1), -0.5)), "");
  EXPECT_EQ(x.trace(1, 0, 2).shape(), Shape{3});
  EXPECT_DOUBLE_EQ(x.trace(1, 0, 2)(0).item<double>(),
                   x(0, 0, 1).item<double>() + x(1, 0, 2).item<double>());
}

TEST(ArrayMethods, Reduce) {
  const Array x = sample();
  EXPECT_EQ(difference(x.sum(1, true), sum(x, 1, true)), "");
  EXPECT_EQ(difference(x.prod(1, true), prod(x, 1, true)), "");
  EXPECT_EQ(difference(x.mean(1, true), mean(x, 1, true)), "");
  EXPECT_EQ(difference(x.var(1, true, 1), var(x, 1, true, 1)), "");
  EXPECT_EQ(difference(x.std(1, true, 1), std(x, 1, true, 1)), "");
  EXPECT_NE(difference(x.var(1, true, 1), x.var(1, true)), "");
  const Array positive = greater(x, 0);
  EXPECT_EQ(difference(positive.all(2), all(positive, 2)), "");
  EXPECT_EQ(difference(positive.any(2), any(positive, 2)), "");
  EXPECT_NE(difference(positive.any(2), positive.all(2)), "");
}

TEST(ArrayMethods, Multiply) {
  const Array x = sample(), y = testing::random_array({4, 5}, -2, 2, Dtype::kFloat64, cpu(), 3);
  const Array product = x.dot(y);
  EXPECT_EQ(product.shape(), (Shape{2, 3, 5}));
  double expected = 0;
  for (int64_t k = 0; k < 4; ++k) expected += x(1, 2, k).item<double>() * y(k, 3).item<double>();
  EXPECT_NEAR(product(1, 2, 3).item<double>(), expected, 1e-12);
}

// Functions that draw from the default generator give what a generator of that seed gives.
TEST(RandomFunctions, DrawAsTheirGenerator) {
  random::seed(11, cpu());
  RandomState state(11);
  EXPECT_EQ(difference(random::randint(3, 90, {40}), state.randint(3, 90, {40})), "");
  EXPECT_EQ(difference(random::random_integers(3, 9, {40}), state.random_integers(3, 9, {40})), "");
  EXPECT_EQ(random::bytes(13), state.bytes(13));
  EXPECT_EQ(difference(random::choice(9, {20}), state.choice(9, {20})), "");
  EXPECT_EQ(difference(random::permutation(30), state.permutation(30)), "");
  const Array a = arange(30), b = arange(30);
  random::shuffle(a);
  state.shuffle(b);
  EXPECT_EQ(difference(a, b), "");
  EXPECT_NE(difference(a, arange(30)), "");
}

}  // namespace
}  // namespace catena
