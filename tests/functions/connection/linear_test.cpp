// The layer Linear; linear itself has records.
#include "catena/functions/connection/linear.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

class LinearLayers : public OnDevice {
 protected:
  // 3 inputs, 2 outputs.
  F::Linear layer(bool bias = true, Dtype dtype = Dtype::kFloat64) const {
    DeviceScope scope(device());
    F::LinearOptions options;
    options.nobias = !bias;
    options.initialW = draw({2, 3}, -1, 1, 11, dtype);
    if (bias) options.initial_bias = draw({2}, -1, 1, 12, dtype);
    return F::Linear(3, 2, options);
  }
};

TEST_P(LinearLayers, TheLayerIsTheFunctionOfItsParameters) {
  const Array x = draw({4, 3}, -1, 1, 1);
  const F::Linear l = layer(), no_bias = layer(false);
  EXPECT_EQ(testing::difference(l(x).data(), F::linear(x, l.W, l.b).data()), "");
  EXPECT_EQ(testing::difference(no_bias(x).data(), F::linear(x, no_bias.W).data()), "");
}

TEST_P(LinearLayers, LinearStartsAsLeCunNormal) {
  DeviceScope scope(device());
  random::seed(3);
  const F::Linear l(400, 300, {.wscale = 2, .bias = 0.5});
  EXPECT_EQ(l.W.dtype(), Dtype::kFloat32);
  EXPECT_EQ(l.W.shape(), (Shape{300, 400}));
  const std::vector<double> w = l.W.data().to_vector<double>();
  double mean = 0, square = 0;
  for (double v : w) {
    mean += v / double(w.size());
    square += v * v / double(w.size());
  }
  EXPECT_NEAR(mean, 0, 2e-3);
  EXPECT_NEAR(std::sqrt(square), 2 * std::sqrt(1.0 / 400), 1e-3);
  for (double v : l.b.data().to_vector<double>()) EXPECT_EQ(v, 0.5);
}

TEST_P(LinearLayers, NamesAndCopiesItsParameters) {
  F::Linear l = layer();
  const auto named = l.named_parameters();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].first, "W");
  EXPECT_EQ(named[1].first, "b");
  EXPECT_EQ(layer(false).named_parameters().size(), 1u);
  const F::Linear copy = l;
  EXPECT_FALSE(copy.W == l.W);
  EXPECT_EQ(testing::difference(copy.W.data(), l.W.data()), "");
}

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
    return message_of<InvalidType>([&] { layer(x); });
  };
  const std::string text = text_of(net.block.l2, draw({4, 3}));
  EXPECT_EQ(text.find("Invalid operation is performed in: Linear 'block/l2' (Forward)\n\nExpect: "
                      "x.dtype == float32\nActual: float64 != float32\n"),
            0u)
      << text;
  EXPECT_NE(text.find(".astype(dtype::float32)"), std::string::npos) << text;
  EXPECT_NE(text.find("config().default_dtype = dtype::float32"), std::string::npos) << text;
  EXPECT_NE(text_of(net.tail[1], draw({4, 3}, -1, 1, 0, Dtype::kFloat32)).find("Linear 'tail/1'"),
            std::string::npos);
  const std::string integers = text_of(net.block.l1, draw({4, 3}, 0, 9, 0, Dtype::kInt64));
  EXPECT_NE(integers.find(".astype(dtype::float32)."), std::string::npos) << integers;
  EXPECT_NE(message_of<DeviceError>([&] {
              net.block.l1(ones({4, 3}, {dtype::float32, "cpu:7"}));
            }).find("Linear 'block/l1': arrays on different devices"),
            std::string::npos);
}

TEST(LinearLayer, MovedFromIsRefused) {
  F::Linear a(4, 3);
  const F::Linear b = std::move(a);
  const Array x = ones({1, 4}, dtype::float32);
  EXPECT_EQ(b(x).shape(), (Shape{1, 3}));
  EXPECT_NE(message_of<ValueError>([&] { a(x); }).find("Linear: this layer has no weights"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { a.in_size(); }).find("moved from"), std::string::npos);
  EXPECT_THROW(a.out_size(), ValueError);
  EXPECT_THROW(a.W.data(), ValueError);
  EXPECT_EQ(a.parameters().size(), 0u);
  a.to("cpu:1");
  a.zero_grads();
  const F::Linear no_bias(3, 4, {.nobias = true});
  EXPECT_NE(message_of<ValueError>([&] { no_bias.b.data(); }).find("Parameter::data"),
            std::string::npos);
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
