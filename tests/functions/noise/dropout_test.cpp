// What the record of dropout does not say: how much is dropped, and when nothing is.
#include "catena/functions/noise/dropout.h"

#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/noise.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class DropoutFunction : public OnDevice {};

TEST_P(DropoutFunction, KeepsOrScales) {
  random::seed(5);
  const Variable x(draw({50, 40}, 1, 2));
  const Variable y = F::dropout(x, 0.3);
  const std::vector<double> in = x.data().to_vector<double>(), out = y.data().to_vector<double>();
  int kept = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (out[i] == 0) continue;
    ++kept;
    EXPECT_NEAR(out[i], in[i] / 0.7, 1e-12);
  }
  EXPECT_NEAR(kept / 2000.0, 0.7, 0.05);
  y.set_grad(x.data());
  y.backward();  // the same mask
  EXPECT_EQ(testing::difference(x.grad(), y.data()), "");
  const Variable other = F::dropout(x, 0.3);
  EXPECT_NE(testing::difference(other.data(), y.data()), "");
}

// Whatever the size, the strides and the seed: the gradient has the mask, and a seed repeats it.
TEST_P(DropoutFunction, ASeedRepeatsTheMask) {
  const Array wide = ones({33, 70}, {Dtype::kFloat32, device()});
  const Array strided = wide(Slice(none, none, 2), Slice(1, none));
  const Array images = F::channels_last(ones({2, 7, 5, 3}, {Dtype::kFloat32, device()}));
  for (const Array& x_data : {strided, images, strided.T(), wide(0, Slice(0, 1)),
                              wide(0, Slice(1, 6)), wide(0, Slice(3, 10))}) {
    const auto dropped = [&](uint64_t seed) {
      random::seed(seed);
      const Variable x(x_data), y = F::dropout(x, 0.5);
      y.set_grad(ones(x_data.shape(), {Dtype::kFloat32, device()}));
      y.backward();
      EXPECT_EQ(testing::difference(x.grad(), y.data(), 0, 0), "") << x_data.shape();
      return y.data();
    };
    const Array y = dropped(3);
    EXPECT_EQ(testing::difference(dropped(3), y, 0, 0), "") << x_data.shape();
    if (x_data.size() <= 20) continue;
    EXPECT_NE(testing::difference(dropped(4), y), "") << x_data.shape();
  }
}

TEST_P(DropoutFunction, DropsTheSameOnEveryDevice) {
  const auto dropped_on = [](Device other) {
    random::seed(5);
    return F::dropout(Variable(ones({5, 4}, {Dtype::kFloat64, other})), 0.5).data().to(cpu());
  };
  EXPECT_EQ(testing::difference(dropped_on(device()), dropped_on(cpu())), "");
}

TEST_P(DropoutFunction, OutsideTrainingIsTheInput) {
  const Variable x(draw({2, 3}));
  EXPECT_TRUE(same_variable(F::dropout(x, 0.5, false), x));
  EXPECT_EQ(F::dropout(x, 0.0).data().raw_data(), x.data().raw_data());  // no kernel
}

CATENA_ON_DEVICES(DropoutFunction);

}  // namespace
}  // namespace catena
