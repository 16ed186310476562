#include "catena/functions/attention/alibi.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

TEST(Alibi, SlopesAreThoseOfThePaper) {
  EXPECT_EQ(F::alibi_slopes(8), (std::vector<double>{1 / 2., 1 / 4., 1 / 8., 1 / 16., 1 / 32.,
                                                     1 / 64., 1 / 128., 1 / 256.}));
  EXPECT_EQ(F::alibi_slopes(1), std::vector<double>{1 / 256.});
  // As the authors' code has them: those of four heads, then every second one of eight.
  EXPECT_EQ(F::alibi_slopes(6),
            (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}));
}

TEST(Alibi, BiasFallsWithTheDistance) {
  const Array bias = F::alibi_bias(2, 2, 3);
  EXPECT_EQ(bias.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(bias.dtype(), Dtype::kFloat32);
  // Slopes 1/16 and 1/256; the queries are at positions 1 and 2.
  testing::assert_array_equal(
      bias * 256,
      array(std::vector<float>{-16, 0, -16, -32, -16, 0, -1, 0, -1, -2, -1, 0}, {2, 2, 3}));
  const Array row = F::alibi_bias(2, 2, 3, {.causal = true, .dtype = Dtype::kFloat64});
  testing::assert_array_equal(row * 256,
                              array(std::vector<double>{-32, -16, 0, -2, -1, 0}, {2, 1, 3}));
}

TEST(Alibi, Mistakes) {
  EXPECT_EQ(error_of<ValueError>([] { F::alibi_bias(0, 2, 2); }),
            "alibi_bias: expected at least one head, got 0");
  EXPECT_EQ(error_of<ValueError>([] { F::alibi_bias(1, 2, 0); }),
            "alibi_bias: expected at least one query and one key, got 2 and 0");
  EXPECT_EQ(error_of<ValueError>([] { F::alibi_bias(1, 2, 2, {.dtype = Dtype::kInt32}); }),
            "alibi_bias: expected a floating dtype, got int32");
}

}  // namespace
}  // namespace catena
