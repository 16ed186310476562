// What the records of convolution_2d do not say: memory order, wrong layers, and their names in
// errors.
#include "catena/functions/connection/convolution_2d.h"

#include <limits>

#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Convolution : public OnDevice {};

// Other errors are in the function's record.
TEST_P(Convolution, RefusesWhatDoesNotFit) {
  EXPECT_THROW(F::convolution_2d(draw({2, 3, 5, 6}, -1, 1, 0, Dtype::kFloat32), draw({4, 3, 3, 2})),
               InvalidType);
  EXPECT_THROW(F::Convolution2D(3, 4, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(F::Convolution2D(3, 4, 0), ValueError);
  EXPECT_THROW(F::Convolution2D(3, 4, 3, {.initialW = draw({4, 3, 2, 2})}), ShapeError);
  EXPECT_THROW(F::Convolution2D(3, 4, 3, {.nobias = true, .initial_bias = draw({4})}), ValueError);
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
  const std::string window = error_of<ShapeError>([&] {
    net.block.c2(net.block.c1(float32({2, 3, 4, 4})));
  });
  EXPECT_EQ(window.find("Convolution2D 'block/c2': a window of (3, 3)"), 0u) << window;
  const std::string channels = error_of<InvalidType>([&] { net.block.c2(float32({2, 3, 4, 4})); });
  expect_contains(channels, {"Convolution2D 'block/c2'"});
}

CATENA_ON_DEVICES(Convolution);

}  // namespace
}  // namespace catena
