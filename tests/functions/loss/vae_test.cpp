// Losses of auto-encoders in 16 bits, and where digits could be lost; values and gradients have
// records.
#include "catena/functions/loss/vae.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

class VaeLosses : public OnDevice {
 protected:
  Array filled(const Shape& shape, double value, Dtype dtype) const {
    return full(shape, value, {dtype, device()});
  }
};

// 3000 terms of 0.5 and 40,000 squares that half precision could neither add up nor hold.
TEST_P(VaeLosses, AddUpInFloat32) {
  const Array mean = filled({3000}, 1, Dtype::kFloat16), zero = zeros_like(mean);
  const Variable loss = F::gaussian_kl_divergence(mean, zero);
  EXPECT_EQ(loss.dtype(), Dtype::kFloat16);
  EXPECT_EQ(loss.data().astype(Dtype::kFloat64).item<double>(), 1500);
  const Array far = filled({4}, 200, Dtype::kFloat16);
  const Variable x(far);
  const Variable nll = F::gaussian_nll(x, zeros_like(far), filled({4}, 8, Dtype::kFloat16));
  EXPECT_NEAR(nll.data().astype(Dtype::kFloat64).item<double>(),
              4 * (0.5 * 40000 * std::exp(-8.0) + 4 + 0.5 * std::log(2 * 3.14159265358979)), 0.05);
  nll.backward();
  EXPECT_EQ(x.grad().dtype(), Dtype::kFloat16);
  EXPECT_NEAR(x.grad()(0).astype(Dtype::kFloat64).item<double>(), 200 * std::exp(-8.0), 1e-4);
}

TEST_P(VaeLosses, KeepDigitsNearTheStandardNormal) {
  const Array zero = filled({1}, 0, Dtype::kFloat32), v = filled({1}, 0.01, Dtype::kFloat32);
  const double exact = 0.5 * (std::expm1(double(0.01f)) - double(0.01f));
  EXPECT_NEAR(F::gaussian_kl_divergence(zero, v).data().item<float>() / exact, 1, 1e-3);
}

TEST_P(VaeLosses, LargeScoresStayFinite) {
  const Array x = array({1.f, 0.f, 1.f}).to(device()),
              y = array({200.f, -200.f, -200.f}).to(device());
  const Variable scores(y);
  const Variable loss = F::bernoulli_nll(x, scores);
  EXPECT_EQ(loss.data().item<float>(), 200.f);
  loss.backward();
  EXPECT_EQ(scores.grad().to_vector<float>(), (std::vector<float>{0, 0, -1}));
}

CATENA_ON_DEVICES(VaeLosses);

}  // namespace
}  // namespace catena
