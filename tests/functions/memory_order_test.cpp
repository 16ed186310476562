// Functions and gradients keep the memory order of their operands: channels-last images stay
// channels-last through a network and back.
#include "catena/array/memory_order.h"

#include "catena/functions/array.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "catena/functions/noise.h"
#include "catena/functions/normalization.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

const MemoryOrder kLast({0, 2, 3, 1});

bool is_last(const Array& a) { return a.is_dense() && a.order() == kLast; }

class MemoryOrders : public OnDevice {
 protected:
  Array images(uint64_t seed = 1) const {
    return F::channels_last(draw({2, 8, 6, 6}, -1, 1, seed, Dtype::kFloat32));
  }
};

TEST_P(MemoryOrders, FunctionsKeepIt) {
  const Variable x(images()), other(images(2));
  EXPECT_TRUE(is_last((x + other).data()));
  EXPECT_TRUE(is_last((x * 2 - other).data()));
  EXPECT_TRUE(is_last(F::relu(x).data()));
  EXPECT_TRUE(is_last(F::sigmoid(x).data()));
  EXPECT_TRUE(is_last(F::dropout(x, 0.5).data()));
  EXPECT_TRUE(is_last(F::concat({x, other}, 1).data()));
  EXPECT_TRUE(is_last(F::concat({x, other}, 0).data()));
  EXPECT_TRUE(is_last(F::cast(x, Dtype::kFloat64).data()));
  EXPECT_TRUE(is_last(F::copy(x, cpu(1)).data()));
}

// Those that have layouts of their own for images keep it in their results and gradients, and C
// order as well.
TEST_P(MemoryOrders, FunctionsOfImagesKeepIt) {
  const auto parameter = [&](const Shape& shape) {
    return draw(shape, 0.5, 1.5, 4, Dtype::kFloat32);
  };
  const Array W = parameter({8, 8, 3, 3}), g = parameter({8}), b = parameter({8});
  const std::pair<const char*, std::function<Variable(const Variable&)>> functions[] = {
      {"convolution", [&](const Variable& x) { return F::convolution_2d(x, W); }},
      {"deconvolution", [&](const Variable& x) { return F::deconvolution_2d(x, W); }},
      {"batch", [&](const Variable& x) { return F::batch_normalization(x, g, b); }},
      {"group", [&](const Variable& x) { return F::group_normalization(x, 2, g, b); }},
      {"instance", [&](const Variable& x) { return F::instance_normalization(x, g, b); }},
      {"response", [&](const Variable& x) { return F::local_response_normalization(x); }}};
  for (const auto& [name, f] : functions) {
    const Variable last(images()), first(images().contiguous());
    for (const Variable& x : {last, first}) {
      const Variable y = f(x);
      y.set_grad(ones_like(y.data()));
      y.backward();
    }
    EXPECT_TRUE(is_last(f(last).data()) && is_last(last.grad())) << name;
    EXPECT_TRUE(f(first).data().is_contiguous() && first.grad().is_contiguous()) << name;
  }
}

// Also the sum of gradients of a variable that is used several times.
TEST_P(MemoryOrders, GradientsKeepIt) {
  const Variable x(images());
  const Variable h = F::relu(x) * 2;
  const Variable y = h + F::sigmoid(h) + F::cast(F::cast(h, Dtype::kFloat64), Dtype::kFloat32);
  y.set_grad(images(3));
  y.backward({.retain_grad = true});
  EXPECT_TRUE(is_last(h.grad()));
  EXPECT_TRUE(is_last(x.grad()));
}

TEST_P(MemoryOrders, ResidualBlocksKeepIt) {
  struct Block : FunctionSet {
    F::Convolution2D c1{8, 8, 3, {.pad = 1, .nobias = true}},
        c2{8, 8, 3, {.pad = 1, .nobias = true}};
    F::BatchNormalization b1{8}, b2{8};
    CATENA_FUNCTIONS(c1, c2, b1, b2)
  } block;
  block.to(device());
  const Variable x(images());
  const Variable h = block.b1.relu(block.c1(x));
  const Variable y = block.b2.add_relu(block.c2(h), h) + h;
  EXPECT_TRUE(is_last(y.data()));
  y.set_grad(images(3));
  y.backward({.retain_grad = true});
  EXPECT_TRUE(is_last(h.grad()));
  EXPECT_TRUE(is_last(x.grad()));
}

// The mask belongs to elements, whatever the order of the gradient in memory.
TEST_P(MemoryOrders, DropoutDropsTheSameElementsBackwards) {
  for (const bool x_last : {false, true})
    for (const bool gy_last : {false, true}) {
      const Array one = ones({2, 8, 6, 6}, {Dtype::kFloat32, device()});
      const Variable x(x_last ? F::channels_last(one) : one);
      const Variable y = F::dropout(x, 0.5);
      y.set_grad(gy_last ? F::channels_last(one) : one);
      y.backward();
      EXPECT_EQ(testing::difference(x.grad(), y.data(), 0, 0), "");
    }
}

CATENA_ON_DEVICES(MemoryOrders);

}  // namespace
}  // namespace catena
