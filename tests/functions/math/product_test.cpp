// What the records of products and sorts do not say: elements that are zero, equal or not finite.
#include <limits>

#include "catena/array/scan.h"
#include "catena/array/sorting.h"

#include "catena/functions/array/sort.h"
#include "catena/functions/array/triangle.h"
#include "catena/functions/math/cumprod.h"
#include "catena/functions/math/prod.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Products : public OnDevice {};

TEST_P(Products, RunningOnesHaveGradientsWhereElementsAreZero) {
  for (const std::vector<double>& values :
       {std::vector<double>{2, 0, 3, -1, 0.5}, {0, 0, 2, 3, 1}, {1, 2, 3, 4, 0}}) {
    const Array x = array(values).to(device());
    expect_gradients([](const Variable& v) { return F::cumprod(v, 0); }, x);
    EXPECT_NO_THROW(assert_allclose(F::cumprod(x, 0).data(), catena::cumprod(x, 0), 0, 0));
  }
}

TEST_P(Products, NoPartOverflowsBesideAZero) {
  const Array x = array({0.0, 1e30, 1e30, 1e30, 1e30, 1e30, 1e30, 1e30}).to(device());
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    const Variable v(x.astype(dtype));
    const Variable running = F::cumprod(v, 0), product = F::prod(v);
    EXPECT_EQ(testing::difference(running.data(), zeros_like(v.data())), "");
    EXPECT_EQ(product.item<double>(), 0);
    const Array first = equal(x, 0).astype(dtype);
    running.set_grad(first);
    running.backward();
    EXPECT_EQ(testing::difference(v.grad(), first), "");
  }
}

TEST_P(Products, RunningOnesOf16BitsRoundOnce) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    const Array x = draw({2, 20}, 0.9, 1.2, 4, dtype);
    const Array wide = F::cumprod(x.astype(Dtype::kFloat64), 1).data();
    const Array y = F::cumprod(x, 1).data();
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(testing::difference(y, wide.astype(dtype)), "");
  }
}

class Sorted : public OnDevice {};

TEST_P(Sorted, EqualElementsGetTheirOwnGradientInTheirOrder) {
  const Variable x(array({2.0, 1.0, 2.0, 1.0}).to(device()));
  const Variable y = F::sort(x);
  y.set_grad(array({10.0, 20.0, 30.0, 40.0}).to(device()));
  y.backward();
  EXPECT_EQ(testing::difference(x.grad(), array({30.0, 10.0, 40.0, 20.0}).to(device())), "");
}

TEST_P(Sorted, NanIsLast) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Variable x(array({nan, 2.0, 1.0}).to(device()));
  const Variable y = F::sort(x);
  EXPECT_EQ(testing::difference(y.data(), array({1.0, 2.0, nan}).to(device())), "");
  y.set_grad(array({10.0, 20.0, 30.0}).to(device()));
  y.backward();
  EXPECT_EQ(testing::difference(x.grad(), array({30.0, 20.0, 10.0}).to(device())), "");
}

TEST_P(Sorted, ConstantsAndIntegersAreSortedAsArraysAre) {
  const Array x = array(std::vector<int32_t>{3, -1, 2}).to(device());
  EXPECT_EQ(testing::difference(F::sort(x).data(), catena::sort(x)), "");
  const NoBackprop off;
  const Variable v(draw({3, 4}));
  EXPECT_EQ(testing::difference(F::sort(v, 0).data(), catena::sort(v.data(), 0)), "");
}

class Triangles : public OnDevice {};

TEST_P(Triangles, AVectorIsEachRow) {
  const Array x = array({1.0, 2.0}).to(device());
  EXPECT_EQ(testing::difference(F::tril(x).data(), array({{1.0, 0.0}, {1.0, 2.0}}).to(device())),
            "");
}

TEST_P(Triangles, NoGradientLeavesThemWhereElementsAreNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const Variable x(array({1.0, inf, inf, 2.0}).reshape({2, 2}).to(device()));
  const Variable y = F::tril(x);
  EXPECT_EQ(testing::difference(y.data(), array({1.0, 0.0, inf, 2.0}).reshape({2, 2}).to(device())),
            "");
  y.set_grad(array({1.0, inf, 2.0, 3.0}).reshape({2, 2}).to(device()));
  y.backward();
  EXPECT_EQ(testing::difference(x.grad(), array({1.0, 0.0, 2.0, 3.0}).reshape({2, 2}).to(device())),
            "");
}

CATENA_ON_DEVICES(Products);
CATENA_ON_DEVICES(Sorted);
CATENA_ON_DEVICES(Triangles);

}  // namespace
}  // namespace catena
