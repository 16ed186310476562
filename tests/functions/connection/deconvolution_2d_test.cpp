// What the records of deconvolution_2d do not say: it is the adjoint of convolution_2d, sizes of
// results, memory order, the layer.
#include "catena/functions/connection/deconvolution_2d.h"

#include "catena/functions/connection/convolution_2d.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using F::DeconvolutionOptions;

class Deconvolution : public OnDevice {};

// <conv(y, W), x> = <y, deconv(x, W)> for each window, and each size that it fits.
TEST_P(Deconvolution, IsTheAdjointOfConvolution) {
  struct Case {
    Shape image, W;
    F::ConvolutionOptions options;
  };
  const std::vector<Case> cases = {
      {{2, 3, 5, 6}, {4, 3, 3, 2}, {}},
      {{2, 3, 7, 6}, {4, 3, 3, 3}, {.stride = {2, 3}, .pad = {1, 2}}},
      {{2, 3, 8, 7}, {4, 3, 3, 3}, {.stride = {2, 3}, .pad = {1, 2}}},
      {{1, 2, 8, 7}, {3, 2, 3, 2}, {.pad = 1, .dilation = {2, 3}}},
      {{2, 4, 5, 5}, {6, 2, 3, 3}, {.pad = 1, .groups = 2}},
      {{1, 1, 6, 8}, {1, 1, 3, 3}, {.stride = 2, .cover_all = true}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(message(c.image, " ", c.W));
    const Array y = draw(c.image, -1, 1, 1), W = draw(c.W, -1, 1, 2);
    const Array forward = F::convolution_2d(y, W, c.options).data();
    const Array x = draw(forward.shape(), -1, 1, 3);
    const F::Extent2D outsize(c.image[2], c.image[3]);
    for (const Array& layout : {x, F::channels_last(x)}) {
      const Array back = F::deconvolution_2d(layout, W,
                                             {.stride = c.options.stride,
                                              .pad = c.options.pad,
                                              .dilation = c.options.dilation,
                                              .groups = c.options.groups,
                                              .outsize = outsize})
                             .data();
      ASSERT_EQ(back.shape(), c.image);
      EXPECT_NEAR(sum(forward * x).item<double>(), sum(y * back).item<double>(), 1e-12);
    }
  }
}

TEST_P(Deconvolution, KeepsTheLayout) {
  const Array x = draw({2, 3, 4, 5}), W = draw({3, 4, 3, 3});
  EXPECT_TRUE(F::deconvolution_2d(x, W).data().is_contiguous());
  EXPECT_TRUE(
      F::deconvolution_2d(F::channels_last(x), W).data().transpose({0, 2, 3, 1}).is_contiguous());
}

// As upsampling by 2 of networks that draw images has it.
TEST_P(Deconvolution, SizesOfResults) {
  const Array x = draw({1, 1, 4, 7}), W = draw({1, 1, 4, 4});
  const auto shape = [&](const DeconvolutionOptions& o) {
    return F::deconvolution_2d(x, W, o).shape();
  };
  EXPECT_EQ(shape({.stride = 2, .pad = 1}), (Shape{1, 1, 8, 14}));
  EXPECT_EQ(shape({.stride = 2, .pad = 1, .outsize = F::Extent2D(9, 14)}), (Shape{1, 1, 9, 14}));
  EXPECT_THROW(shape({.stride = 2, .pad = 1, .outsize = F::Extent2D(10, 14)}), ShapeError);
  EXPECT_THROW(shape({.pad = 4}), ShapeError);
  EXPECT_THROW(shape({.stride = int64_t{1} << 62}), ShapeError);
  EXPECT_THROW(shape({.pad = int64_t{1} << 62}), ShapeError);
  EXPECT_EQ(F::deconvolution_2d(draw({1, 1, 1, 1}), W, {.stride = int64_t{1} << 62}).shape(),
            (Shape{1, 1, 4, 4}));
}

TEST_P(Deconvolution, LayerHandsItsOptionsOn) {
  const DeviceScope scope(device());
  const F::Deconvolution2D layer(4, 6, 3,
                                 {.stride = {2, 3},
                                  .pad = 1,
                                  .dilation = {1, 2},
                                  .groups = 2,
                                  .outsize = F::Extent2D(8, 15),
                                  .initialW = draw({4, 3, 3, 3})});
  const Variable x(draw({2, 4, 4, 5}));
  const Variable expected = F::deconvolution_2d(
      x, layer.W, layer.b,
      {.stride = {2, 3}, .pad = 1, .dilation = {1, 2}, .groups = 2, .outsize = F::Extent2D(8, 15)});
  EXPECT_EQ(testing::difference(layer(x).data(), expected.data()), "");
}

TEST_P(Deconvolution, LayersHaveTheirShapesOrAreRefused) {
  const DeviceScope scope(device());
  F::Deconvolution2D layer(16, 64, {3, 5});
  EXPECT_EQ(layer.W.shape(), (Shape{16, 64, 3, 5}));
  EXPECT_EQ(layer.parameter_names(), (std::vector<std::string>{"W", "b"}));
  const F::Deconvolution2D grouped(16, 64, 3, {.groups = 4, .nobias = true});
  EXPECT_EQ(grouped.W.shape(), (Shape{16, 16, 3, 3}));
  EXPECT_FALSE(grouped.b.defined());
  const F::Deconvolution2D moved = std::move(layer);
  EXPECT_THROW(layer(draw({1, 16, 2, 2})), ValueError);
  EXPECT_THROW(F::Deconvolution2D(3, 4, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(F::Deconvolution2D(3, 4, 0), ValueError);
  EXPECT_THROW(F::Deconvolution2D(3, 4, 3, {.nobias = true, .initial_bias = draw({4})}),
               ValueError);
  EXPECT_THROW(F::Deconvolution2D(3, 4, 3, {.initialW = draw({4, 3, 3, 3})}), ShapeError);
}

CATENA_ON_DEVICES(Deconvolution);

}  // namespace
}  // namespace catena
