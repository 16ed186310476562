// What the records of deconvolution_2d do not say: sizes of results, the layer.
#include "catena/functions/connection/deconvolution_2d.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

using F::DeconvolutionOptions;

class Deconvolution : public OnDevice {};

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
