#include "catena/functions/connection/convolution_2d.h"

#include <limits>

#include "functions/functions_test_util.h"
#include "kernels/convolution_case.h"

namespace catena {
namespace {

using F::ConvolutionOptions;

// The definition, in double, on the CPU.
Array definition(const Array& x, const Array& W, const Array& b, const ConvolutionOptions& o,
                 const Shape& result) {
  testing::ConvolutionCase c;
  c.batch = x.shape()[0], c.channels = x.shape()[1], c.height = x.shape()[2],
  c.width = x.shape()[3], c.filters = W.shape()[0], c.groups = int(o.groups), c.bias = true;
  c.window = {{W.shape()[2], W.shape()[3]},
              {o.stride.height, o.stride.width},
              {o.pad.height, o.pad.width},
              {o.dilation.height, o.dilation.width}};
  for (int axis = 0; axis < 2; ++axis) c.more[axis] = result[size_t(2 + axis)] - c.out(axis);
  testing::ConvolutionData d;
  d.x.values = testing::values_of(x), d.w.values = testing::values_of(W);
  d.b.values = testing::values_of(b);
  d.y.values.resize(size_t(element_count(result)));
  return array(testing::expected_convolution(testing::Pass::kForward, c, d).values, result);
}

struct Case {
  const char* name;
  Shape x, W;
  ConvolutionOptions options;
  Shape y;
};

std::vector<Case> cases() {
  return {
      {"plain", {2, 3, 5, 6}, {4, 3, 3, 2}, {}, {2, 4, 3, 5}},
      {"pointwise", {2, 3, 4, 5}, {4, 3, 1, 1}, {}, {2, 4, 4, 5}},
      {"pointwise_stride", {2, 3, 4, 5}, {4, 3, 1, 1}, {.stride = 2}, {2, 4, 2, 3}},
      {"stride_pad", {2, 3, 7, 6}, {4, 3, 3, 3}, {.stride = {2, 3}, .pad = {1, 2}}, {2, 4, 4, 3}},
      {"dilation", {1, 2, 8, 7}, {3, 2, 3, 2}, {.pad = 1, .dilation = {2, 3}}, {1, 3, 6, 6}},
      {"groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {.pad = 1, .groups = 2}, {2, 6, 5, 5}},
      {"depthwise", {2, 3, 5, 5}, {3, 1, 3, 3}, {.pad = 1, .groups = 3}, {2, 3, 5, 5}},
      {"rest_left_out", {1, 1, 6, 8}, {1, 1, 3, 3}, {.stride = 2}, {1, 1, 2, 3}},
      {"cover_all", {1, 1, 6, 8}, {1, 1, 3, 3}, {.stride = 2, .cover_all = true}, {1, 1, 3, 4}},
      {"window_is_the_image", {3, 2, 4, 4}, {5, 2, 4, 4}, {}, {3, 5, 1, 1}},
      {"window_in_the_padding", {1, 1, 2, 2}, {1, 1, 3, 3}, {.stride = 4, .pad = 4}, {1, 1, 2, 2}},
  };
}

class Convolution : public OnDevice {
 protected:
  Array image(const Case& c, Dtype dtype = Dtype::kFloat64) const {
    return draw(c.x, -1, 1, 1, dtype);
  }
  Array weight(const Case& c, Dtype dtype = Dtype::kFloat64) const {
    return draw(c.W, -1, 1, 2, dtype);
  }
  Array bias(const Case& c, Dtype dtype = Dtype::kFloat64) const {
    return draw({c.W[0]}, -1, 1, 3, dtype);
  }
};

TEST_P(Convolution, IsItsDefinitionInEveryLayout) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Array x = image(c), W = weight(c), b = bias(c);
    const Array expected = definition(x, W, b, c.options, c.y);
    for (const Array& layout : {x, F::channels_last(x), padded(x), reversed_layout(x)}) {
      const Variable y = F::convolution_2d(layout, W, b, c.options);
      ASSERT_EQ(y.shape(), c.y);
      EXPECT_EQ(testing::difference(y.data(), expected, 1e-12, 1e-12), "");
      const Array without = F::convolution_2d(layout, W, c.options).data();
      EXPECT_EQ(testing::difference(without + b.reshape({1, c.W[0], 1, 1}), expected, 1e-12, 1e-12),
                "");
    }
    EXPECT_EQ(testing::difference(F::convolution_2d(x, transposed_layout(W), b, c.options).data(),
                                  expected, 1e-12, 1e-12),
              "");
  }
}

TEST_P(Convolution, KeepsTheLayout) {
  const Case c = cases()[0];
  const Array y = F::convolution_2d(F::channels_last(image(c)), weight(c)).data();
  const Variable x(image(c));
  const Array from_variable = F::convolution_2d(F::channels_last(x), weight(c)).data();
  EXPECT_EQ(from_variable.strides(), y.strides());
  EXPECT_TRUE(y.transpose({0, 2, 3, 1}).is_contiguous());
  EXPECT_TRUE(F::convolution_2d(image(c), weight(c)).data().is_contiguous());
}

TEST_P(Convolution, EveryDtype) {
  for (const Case& c : cases()) {
    for (const auto& [dtype, error] :
         {std::pair{Dtype::kFloat32, 1e-5}, {Dtype::kFloat16, 4e-3}, {Dtype::kBFloat16, 3e-2}}) {
      SCOPED_TRACE(message(c.name, " ", dtype));
      const Array x = image(c, dtype), W = weight(c, dtype), b = bias(c, dtype);
      const auto wide = [](const Array& a) { return a.astype(Dtype::kFloat64); };
      const Array expected = definition(wide(x), wide(W), wide(b), c.options, c.y);
      for (const Array& layout : {x, F::channels_last(x)}) {
        const Array y = F::convolution_2d(layout, W, b, c.options).data();
        ASSERT_EQ(y.dtype(), dtype);
        EXPECT_EQ(testing::difference(wide(y), expected, error, error), "");
      }
    }
  }
}

TEST_P(Convolution, GradientsOfFirstAndSecondOrder) {
  for (const Case& c : cases()) {
    const auto f = [&](const Variables& v) {
      return Variables{v.size() == 3 ? F::convolution_2d(v[0], v[1], v[2], c.options)
                                     : F::convolution_2d(v[0], v[1], c.options)};
    };
    expect_gradients(f, {image(c), weight(c), bias(c)}, c.name);
    expect_gradients(f, {F::channels_last(image(c)), weight(c)}, message(c.name, " last"));
  }
}

// Into the same gradient arrays, without arrays between.
TEST_P(Convolution, GradientsAddUp) {
  const Case c = cases()[3];
  DeviceScope scope(device());
  F::Convolution2D layer(3, 4, 3,
                         {.stride = c.options.stride,
                          .pad = c.options.pad,
                          .initialW = weight(c),
                          .initial_bias = bias(c)});
  const Variable x(image(c));
  const auto backward = [&] {
    const Variable y = layer(x);
    y.set_grad(draw(c.y, -1, 1, 4));
    y.backward();
  };
  layer.zero_grads();
  backward();
  const Array W = layer.W.grad().copy(), b = layer.b.grad().copy();
  backward();
  EXPECT_EQ(testing::difference(layer.W.grad(), W * 2, 1e-12, 1e-12), "");
  EXPECT_EQ(testing::difference(layer.b.grad(), b * 2, 1e-12, 1e-12), "");
}

TEST_P(Convolution, WithoutElements) {
  const Variable x(zeros({0, 3, 5, 5}, {Dtype::kFloat64, device()})), W(draw({4, 3, 3, 3}));
  const Variable y = F::convolution_2d(x, W, draw({4}));
  EXPECT_EQ(y.shape(), (Shape{0, 4, 3, 3}));
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
  EXPECT_EQ(testing::difference(W.grad(), zeros_like(W.data())), "");
}

TEST_P(Convolution, LayerHasTheStartValuesThatItPromises) {
  DeviceScope scope(device());
  random::seed(3);
  const F::Convolution2D layer(16, 64, {3, 5}, {.wscale = 2, .bias = 0.5});
  EXPECT_EQ(layer.W.shape(), (Shape{64, 16, 3, 5}));
  EXPECT_EQ(layer.W.dtype(), Dtype::kFloat32);
  EXPECT_NEAR(std(layer.W.data()).item<float>(), 2 * std::sqrt(1.0 / (16 * 3 * 5)), 5e-3);
  EXPECT_EQ(testing::difference(layer.b.data(), full({64}, 0.5, {Dtype::kFloat32, device()})), "");
  const F::Convolution2D grouped(16, 64, 3, {.groups = 4, .nobias = true});
  EXPECT_EQ(grouped.W.shape(), (Shape{64, 4, 3, 3}));
  EXPECT_FALSE(grouped.b.defined());
}

// Other errors are in the function's record.
TEST_P(Convolution, RefusesWhatDoesNotFit) {
  const Case c = cases()[0];
  EXPECT_THROW(F::convolution_2d(draw({2, 3, 5}), weight(c)), InvalidType);
  EXPECT_THROW(F::convolution_2d(image(c, Dtype::kFloat32), weight(c)), InvalidType);
  EXPECT_THROW(F::Convolution2D(3, 4, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(F::Convolution2D(3, 4, 0), ValueError);
  EXPECT_THROW(F::Convolution2D(3, 4, 3, {.initialW = draw({4, 3, 2, 2})}), ShapeError);
}

// Sums of such numbers leave 64 bits.
TEST_P(Convolution, RefusesWindowsThatNoImageHolds) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const Array x = draw({1, 1, 6, 6}), W = draw({1, 1, 5, 5}), one = draw({1, 1, 1, 1});
  for (const F::ConvolutionOptions& o :
       {F::ConvolutionOptions{.pad = kHuge}, F::ConvolutionOptions{.pad = kHuge / 2},
        F::ConvolutionOptions{.dilation = int64_t{1} << 62},
        F::ConvolutionOptions{.dilation = kHuge}}) {
    EXPECT_THROW(F::convolution_2d(x, W, o), ShapeError);
  }
  // A window of one element has no dilation, and one position no stride.
  EXPECT_EQ(F::convolution_2d(x, one, {.stride = kHuge, .dilation = kHuge}).shape(),
            (Shape{1, 1, 1, 1}));
  EXPECT_EQ(F::convolution_2d(x, W, {.stride = kHuge}).shape(), (Shape{1, 1, 1, 1}));
}

TEST_P(Convolution, RefusesABiasThatIsGivenAndLeftOut) {
  EXPECT_THROW(F::Convolution2D(3, 4, 3, {.nobias = true, .initial_bias = draw({4})}), ValueError);
}

// Which of the layers it was, also where the image is too small only in the middle of a model.
TEST_P(Convolution, ErrorsNameTheLayer) {
  struct Block : FunctionSet {
    F::Convolution2D c1{3, 4, 3}, c2{4, 4, 3};
    CATENA_FUNCTIONS(c1, c2)
  };
  struct Net : FunctionSet {
    Block block;
    CATENA_FUNCTIONS(block)
  } net;
  net.to(device());
  const auto float32 = [&](const Shape& shape) { return draw(shape, -1, 1, 0, Dtype::kFloat32); };
  const std::string window = message_of<ShapeError>([&] {
    net.block.c2(net.block.c1(float32({2, 3, 4, 4})));
  });
  EXPECT_EQ(window.find("Convolution2D 'block/c2': a window of (3, 3)"), 0u) << window;
  const std::string channels = message_of<InvalidType>([&] {
    net.block.c2(float32({2, 3, 4, 4}));
  });
  EXPECT_NE(channels.find("Convolution2D 'block/c2'"), std::string::npos) << channels;
}

CATENA_ON_DEVICES(Convolution);

}  // namespace
}  // namespace catena
