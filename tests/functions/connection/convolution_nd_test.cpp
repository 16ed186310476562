// What the records of convolution_nd do not say: its layers, and copies that it does not make.
#include "catena/functions/connection/convolution_nd.h"
#include "catena/autograd/autocast.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

class ConvolutionND : public OnDevice {};

TEST_P(ConvolutionND, LayersHaveTheirShapes) {
  const DeviceScope scope(device());
  F::Convolution1D sequences(16, 64, 5, {.pad = 2});
  EXPECT_EQ(sequences.W.shape(), (Shape{64, 16, 5}));
  const Array x = draw({2, 16, 9}, -1, 1, 1, Dtype::kFloat32);
  EXPECT_EQ(sequences(x).shape(), (Shape{2, 64, 9}));
  const F::Convolution3D volumes(4, 6, {3, 2, 1}, {.groups = 2, .nobias = true});
  EXPECT_EQ(volumes.W.shape(), (Shape{6, 2, 3, 2, 1}));
  EXPECT_FALSE(volumes.b.defined());
  EXPECT_EQ(volumes(draw({1, 4, 5, 5, 5}, -1, 1, 1, Dtype::kFloat32)).shape(),
            (Shape{1, 6, 3, 4, 5}));
  const F::Convolution1D moved = std::move(sequences);
  EXPECT_THROW(sequences(x), ValueError);
}

TEST_P(ConvolutionND, LayersRefuseWhatMakesNoSense) {
  EXPECT_THROW(F::Convolution1D(3, 4, 0), ValueError);
  EXPECT_THROW(F::Convolution1D(3, 4, 3, {.stride = {1, 2}}), ValueError);
  EXPECT_THROW(F::Convolution3D(3, 4, {3, 3}), ValueError);
  EXPECT_THROW(F::Convolution3D(3, 4, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(F::ConvolutionND(4, 3, 4, 3), ValueError);
  EXPECT_THROW(F::Convolution1D(3, 4, 3, {.nobias = true, .initial_bias = draw({4})}), ValueError);
  EXPECT_THROW(F::Convolution1D(3, 4, 3, {.initialW = draw({4, 3, 2})}), ShapeError);
}

CATENA_ON_DEVICES(ConvolutionND);

// The second layer's input is in 16 bits already.
TEST(ConvolutionAutocast, OneLayerBehindAnother) {
  const F::Convolution1D first(3, 4, 3), second(4, 5, 3);
  const Variable x = Variable::constant(ones({2, 3, 9}, dtype::float32));
  const AutocastScope low(dtype::bfloat16);
  EXPECT_EQ(second(first(x)).dtype(), dtype::bfloat16);
}

}  // namespace
}  // namespace catena
