// The layer Linear; linear itself has records.
#include "catena/functions/connection/linear.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

class LinearLayers : public OnDevice {};

TEST_P(LinearLayers, ReusesTheInitialArrayWithoutACopy) {
  const Array W = draw({2, 3}, -1, 1, 0, Dtype::kFloat32);
  const F::Linear l(3, 2, {.nobias = true, .initialW = W});
  EXPECT_TRUE(l.W.data().same_body(W));
  EXPECT_FALSE(l.b.defined());
}

// Which of twenty layers it was.
TEST_P(LinearLayers, MessagesOfLinearNameTheLayer) {
  struct Block : FunctionSet {
    F::Linear l1{3, 3}, l2{3, 2, {.nobias = true}};
    CATENA_FUNCTIONS(l1, l2)
  };
  struct Net : FunctionSet {
    Block block;
    std::vector<F::Linear> tail{F::Linear(2, 2), F::Linear(2, 2)};
    CATENA_FUNCTIONS(block, tail)
  } net;
  net.to(device());
  const auto text_of = [&](const F::Linear& layer, const Array& x) {
    return error_of<InvalidType>([&] { layer(x); });
  };
  const std::string text = text_of(net.block.l2, draw({4, 3}));
  EXPECT_EQ(text.find("Invalid operation is performed in: Linear 'block/l2' (Forward)\n\nExpect: "
                      "x.dtype == float32\nActual: float64 != float32\n"),
            0u)
      << text;
  expect_contains(text, {".astype(dtype::float32)", "config().default_dtype = dtype::float32"});
  expect_contains(text_of(net.tail[1], draw({4, 3}, -1, 1, 0, Dtype::kFloat32)),
                  {"Linear 'tail/1'"});
  const std::string integers = text_of(net.block.l1, draw({4, 3}, 0, 9, 0, Dtype::kInt64));
  expect_contains(integers, {".astype(dtype::float32)."});
  expect_contains(error_of<DeviceError>([&] {
                    net.block.l1(ones({4, 3}, {dtype::float32, "cpu:7"}));
                  }),
                  {"Linear 'block/l1': arrays on different devices"});
}

TEST(LinearLayer, MovedFromIsRefused) {
  F::Linear a(4, 3);
  const F::Linear b = std::move(a);
  const Array x = ones({1, 4}, dtype::float32);
  EXPECT_EQ(b(x).shape(), (Shape{1, 3}));
  expect_contains(error_of<ValueError>([&] { a(x); }), {"Linear: this layer has no weights"});
  expect_contains(error_of<ValueError>([&] { a.in_size(); }), {"moved from"});
  EXPECT_THROW(a.out_size(), ValueError);
  EXPECT_THROW(a.W.data(), ValueError);
  EXPECT_EQ(a.parameters().size(), 0u);
  a.to("cpu:1");
  a.zero_grads();
  const F::Linear no_bias(3, 4, {.nobias = true});
  expect_contains(error_of<ValueError>([&] { no_bias.b.data(); }), {"Parameter::data"});
}

TEST_P(LinearLayers, RefusesSizesAndStartValuesThatMakeNoSense) {
  EXPECT_THROW(F::Linear(0, 2), ValueError);
  EXPECT_THROW(F::Linear(3, 2, {.initialW = draw({3, 2})}), ShapeError);
  EXPECT_THROW(F::Linear(3, 2, {.dtype = Dtype::kInt32}), DtypeError);
  EXPECT_THROW(F::Linear(3, 2, {.nobias = true, .initial_bias = draw({2})}), ValueError);
}

CATENA_ON_DEVICES(LinearLayers);

}  // namespace
}  // namespace catena
