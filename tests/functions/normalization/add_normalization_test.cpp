// Normalizations of sums beyond their records: bits of the separate calls, layers, mixed dtypes.
#include "catena/autograd/backward.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class AddNormalization : public OnDevice {};

// Results and gradients of x and residual, where both results have one.
Arrays outcome(const Array& x, const Array& residual, const Array& gamma, const Array& gsum,
               bool together) {
  const Variable a(x), b(residual), g(gamma);
  Variable y, sum;
  if (together) {
    const F::AddNormalizationResult both = F::add_rms_normalization(a, b, g);
    y = both.y, sum = both.sum;
  } else {
    sum = a + b;
    y = F::rms_normalization(sum, g);
  }
  backward({y, sum}, {gsum * 2, gsum});
  return {y.data(), sum.data(), a.grad(), b.grad(), g.grad()};
}

TEST_P(AddNormalization, GivesTheBitsOfSeparateCalls) {
  for (const int64_t size : {3, 64, 1000, 9000}) {
    const Shape shape{5, size};
    const Array x = draw(shape, -1, 1, 1, Dtype::kFloat32),
                r = draw(shape, -1, 1, 2, Dtype::kFloat32),
                gamma = draw({size}, 0.5, 1.5, 3, Dtype::kFloat32),
                gsum = draw(shape, -1, 1, 4, Dtype::kFloat32);
    const Arrays together = outcome(x, r, gamma, gsum, true),
                 apart = outcome(x, r, gamma, gsum, false);
    for (size_t i = 0; i < together.size(); ++i) {
      SCOPED_TRACE(message("size ", size, ", array ", i));
      if (device().is_cpu() || i == 1)
        testing::assert_array_equal(together[i], apart[i]);
      else  // rows may be shared out to threads differently
        assert_allclose(together[i], apart[i], 1e-5, 1e-5);
    }
  }
}

// The sum is rounded before it is normalized.
TEST_P(AddNormalization, RoundsTheSum) {
  const Array x = draw({4, 24}, -1, 1, 1, Dtype::kBFloat16),
              r = draw({4, 24}, -1, 1, 2, Dtype::kBFloat16),
              gamma = draw({24}, 0.5, 1.5, 3, Dtype::kFloat32);
  const F::AddNormalizationResult both = F::add_rms_normalization(x, r, gamma);
  testing::assert_array_equal(both.sum.data(), x + r);
  testing::assert_array_equal(both.y.data(), F::rms_normalization(x + r, gamma).data());
}

TEST_P(AddNormalization, TakesTheWiderDtype) {
  const Variable x(draw({4, 6}, -1, 1, 1, Dtype::kFloat32)),
      r(draw({4, 6}, -1, 1, 2, Dtype::kBFloat16));
  const Array one = ones({6}, {Dtype::kFloat32, device()}), zero = zeros_like(one);
  for (const bool swapped : {false, true}) {
    const F::AddNormalizationResult both = swapped ? F::add_layer_normalization(r, x, one, zero)
                                                   : F::add_layer_normalization(x, r, one, zero);
    testing::assert_array_equal(both.sum.data(), (x + r).data());
    EXPECT_EQ(both.y.dtype(), Dtype::kFloat32);
    F::sum(both.sum + both.y).backward();
    EXPECT_EQ(x.grad().dtype(), Dtype::kFloat32);
    EXPECT_EQ(r.grad().dtype(), Dtype::kBFloat16);
  }
}

// One result alone goes back.
TEST_P(AddNormalization, PartsOfTheGradients) {
  const Array x = draw({4, 6}), r = draw({4, 6}, -1, 1, 2), gamma = draw({6}, 0.5, 1.5);
  const Variable a(x), b(r), g(gamma);
  F::sum(F::add_rms_normalization(a, b, g).sum).backward();
  testing::assert_array_equal(a.grad(), ones_like(x));
  testing::assert_array_equal(b.grad(), ones_like(x));
  EXPECT_FALSE(g.grad().defined() && any(g.grad() != 0.0).truth());
  const Variable alone(r);
  const F::AddNormalizationResult both = F::add_rms_normalization(x, alone, gamma);
  F::sum(both.y * x).backward();
  const Variable sum(x + r);
  F::sum(F::rms_normalization(sum, gamma) * x).backward();
  assert_allclose(alone.grad(), sum.grad(), 1e-14, 1e-14);
}

TEST_P(AddNormalization, Layers) {
  const DeviceScope scope(device());
  const Variable x(draw({4, 6})), r(draw({4, 6}, -1, 1, 2));
  const F::LayerNormalization layer(6, {.dtype = Dtype::kFloat64}),
      plain(6, {.dtype = Dtype::kFloat64, .use_gamma = false, .use_beta = false});
  const F::RMSNormalization rms(6, {.dtype = Dtype::kFloat64});
  assert_allclose(layer(x, r).y.data(), layer(x + r).data(), 1e-14, 1e-14);
  assert_allclose(plain(x, r).y.data(), plain(x + r).data(), 1e-14, 1e-14);
  assert_allclose(rms(x, r).y.data(), rms(x + r).data(), 1e-14, 1e-14);
  testing::assert_array_equal(rms(x, r).sum.data(), (x + r).data());
}

CATENA_ON_DEVICES(AddNormalization);

}  // namespace
}  // namespace catena
