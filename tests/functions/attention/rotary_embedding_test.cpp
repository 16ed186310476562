// Rotary positions beyond their records: scalings, high positions, memory orders.
#include "catena/functions/attention/rotary_embedding.h"

#include "catena/functions/array/transpose.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Rotary : public OnDevice {};

void expect_numbers(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-8 * expected[i]) << i;
}

// The numbers of transformers 4.
TEST(RotaryFrequencies, AreThoseOfTheirScalings) {
  expect_numbers(F::rotary_frequencies(4, {.base = 100}), {1, 0.1});
  expect_numbers(F::rotary_frequencies(9, {.base = 100, .rotated = 4}), {1, 0.1});
  expect_numbers(F::rotary_frequencies(16, {.base = 500000, .llama3 = F::Llama3Scaling()}),
                 {1, 0.193922745, 0.0376060309, 0.00729266474, 0.000524846161, 3.4281022e-05,
                  6.64786987e-06, 1.28917317e-06});
  expect_numbers(
      F::rotary_frequencies(16, {.yarn = F::YarnScaling{.original = 2048}}),
      {1, 0.316227766, 0.1, 0.025693506, 0.00625, 0.00138349648, 0.00025, 7.90569415e-05});
}

// cos and sin of YaRN have a factor, at position 0 alone.
TEST_P(Rotary, AttentionFactors) {
  const Array x = draw({1, 1, 1, 6});
  const auto factor = [&](const F::YarnScaling& s) {
    return (F::rotary_embedding(x, {.yarn = s}).data() / x).mean().item<double>();
  };
  EXPECT_NEAR(factor({.factor = 4}), 1.138629436111989, 1e-12);
  EXPECT_NEAR(factor({.factor = 0.5}), 1, 1e-12);
  EXPECT_NEAR(factor({.factor = 4, .attention_factor = 0.7}), 0.7, 1e-12);
  // Calls with other options in between.
  EXPECT_NEAR(factor({.factor = 4}), 1.138629436111989, 1e-12);
  testing::assert_array_equal(F::rotary_embedding(x).data(), x);
}

// float32 has no digits for such angles, but positions up to here have cosines of float32.
TEST_P(Rotary, HighPositions) {
  const Array x = draw({1, 2, 3, 64}, -1, 1, 1, Dtype::kFloat32);
  for (const bool interleaved : {false, true}) {
    const F::RotaryOptions options{.interleaved = interleaved, .start = 1000003};
    const Array exact = F::rotary_embedding(x.astype(Dtype::kFloat64), options).data();
    assert_allclose(F::rotary_embedding(x, options).data().astype(Dtype::kFloat64), exact, 5e-7,
                    5e-7);
    EXPECT_GT(absolute(exact - x.astype(Dtype::kFloat64)).max().item<double>(), 0.5);
  }
}

// Heads behind positions, as projections have them.
TEST_P(Rotary, KeepTheMemoryOrder) {
  const Variable projected(draw({2, 5, 3, 8}));
  const Variable x = F::transpose(projected, {0, 2, 1, 3}), y = F::rotary_embedding(x);
  EXPECT_EQ(y.data().order(), x.data().order());
  testing::assert_array_equal(y.data().contiguous(),
                              F::rotary_embedding(x.data().contiguous()).data());
}

// Positions of int32 serve the kernel as they are, others are copied.
TEST_P(Rotary, PositionsAreWatched) {
  for (const Dtype dtype : {Dtype::kInt32, Dtype::kInt64}) {
    const Array places = array(std::vector<int32_t>{5, 6, 7}, {3}).astype(dtype).to(device());
    const Variable x(draw({1, 2, 3, 4}));
    const Variable loss = F::sum(F::rotary_embedding(x, {.positions = places}));
    places.fill(0);
    if (dtype == Dtype::kInt32)
      EXPECT_THROW(loss.backward(), GradientError);
    else
      EXPECT_NO_THROW(loss.backward());
  }
}

CATENA_ON_DEVICES(Rotary);

}  // namespace
}  // namespace catena
