// What records do not say of max pooling: what a call keeps, memory order, other providers' states.
#include "catena/functions/pooling/max_pooling_2d.h"

#include <gtest/gtest.h>

#include "catena/functions/connection/convolution_2d.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class MaxPooling2D : public OnDevice {};

Variable pooled(const Variable& x) {
  return F::max_pooling_2d(x, 3, {.stride = F::Extent2D(2), .pad = 1});
}

TEST_P(MaxPooling2D, KeepsChannelsLast) {
  const Array images = draw({2, 8, 7, 6}, -1, 1);
  const Variable x(images), last(F::channels_last(images));
  const Variable y = pooled(x), y_last = pooled(last);
  EXPECT_TRUE(y.data().is_contiguous());
  EXPECT_EQ(y_last.data().order(), last.data().order());
  EXPECT_EQ(testing::difference(y.data(), y_last.data()), "");
  const Array gy = draw(y.shape(), -1, 1, 2);
  y.set_grad(gy);
  y.backward();
  y_last.set_grad(F::channels_last(gy));
  y_last.backward();
  EXPECT_EQ(x.grad().order(), images.order());
  EXPECT_EQ(last.grad().order(), last.data().order());
  EXPECT_EQ(testing::difference(x.grad(), last.grad()), "");
}

// Images that nobody else holds are gone before the backward pass; what it needs are places.
TEST_P(MaxPooling2D, LetsTheImagesGo) {
  const Variable x(draw({2, 8, 7, 6}, -1, 1));
  const auto pool_and_spoil = [&](bool spoil) {
    const Variable y = pooled(x);
    if (spoil) x.data().fill(0);  // would be an error if the node had saved it
    y.set_grad(draw(y.shape(), -1, 1, 2));
    y.backward();
  };
  pool_and_spoil(false);
  const Array expected = x.grad().copy();
  x.set_grad(Array());
  pool_and_spoil(true);
  EXPECT_EQ(testing::difference(x.grad(), expected), "");
}

TEST_P(MaxPooling2D, AnUnrecordedCallKeepsNothing) {
  const Array images = draw({2, 8, 7, 6}, -1, 1);
  const NoBackprop off;
  EXPECT_FALSE(pooled(Variable(images)).requires_grad());
}

CATENA_ON_DEVICES(MaxPooling2D);

}  // namespace
}  // namespace catena
