// Values and dtypes of sums, means and variances where NumPy has rules of its own: no elements,
// 16-bit floats, an `out` that is wider.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/statistics.h"

namespace catena {
namespace {

TEST(Reductions, MeanOfNothingIsNan) {
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item<double>()));
  EXPECT_TRUE(std::isnan(var(zeros({0})).item<double>()));
  const auto columns = mean(zeros({0, 2}, dtype::float32), 0).to_vector<float>();
  EXPECT_TRUE(std::isnan(columns.at(0)) && std::isnan(columns.at(1)));
  EXPECT_EQ(sum(zeros({0})).item<double>(), 0);
}

TEST(Reductions, MeansAreQuotients) {
  const auto constant_of = [](int64_t n, Dtype d, double value) {
    return mean(full({n}, value, d)).item<double>();
  };
  for (int64_t n = 1; n < 1000; ++n) {
    EXPECT_EQ(constant_of(n, dtype::float64, 1), 1) << n;
    EXPECT_EQ(constant_of(n, dtype::float32, 3), 3) << n;
    EXPECT_EQ(constant_of(n, dtype::float16, 1), 1) << n;
    EXPECT_EQ(constant_of(n, dtype::uint8, 3), 3) << n;
  }
  EXPECT_EQ(mean(ones({49}, dtype::bool_)).item<double>(), 1);
  EXPECT_EQ(var(ones({49})).item<double>(), 0);
  const auto columns = mean(ones({49, 3}), 0).to_vector<double>();
  EXPECT_EQ(columns, (std::vector<double>{1, 1, 1}));
  const Array rows = concatenate({ones({1, 49}), arange(49).reshape({1, 49})}, 0);
  EXPECT_TRUE(std::isnan(corrcoef(rows)(0, 0).item<double>()));
}

TEST(Reductions, AWiderOutWidensSums) {
  const Array a = array<float>({1e8F, 1, -1e8F, 0.1F}), wide = a.astype(dtype::float64);
  const auto into = [](const auto& f, const Shape& shape, Dtype d) {
    const Array out = zeros(shape, d);
    f(out);
    return out.to_vector<double>();
  };
  using V = std::vector<double>;
  EXPECT_EQ(into([&](const Array& out) { sum(a, {.out = out}); }, {}, dtype::float64),
            sum(wide).to_vector<double>());
  EXPECT_EQ(into([&](const Array& out) { mean(a, {.out = out}); }, {}, dtype::float64),
            mean(wide).to_vector<double>());
  EXPECT_EQ(into([&](const Array& out) { prod(a, {.out = out}); }, {}, dtype::float64),
            prod(wide).to_vector<double>());
  EXPECT_EQ(into([&](const Array& out) { nanmean(a, {.out = out}); }, {}, dtype::float64),
            mean(wide).to_vector<double>());
  EXPECT_EQ(into([&](const Array& out) { cumsum(a, 0, {}, out); }, {4}, dtype::float64),
            cumsum(wide).to_vector<double>());
  EXPECT_EQ(into([&](const Array& out) { cumprod(a, 0, {}, out); }, {4}, dtype::float64),
            cumprod(wide).to_vector<double>());
  // A dtype decides; a narrower out is cast into, as is one that does not hold every number.
  EXPECT_EQ(into([&](const Array& out) { cumsum(a, 0, dtype::float32, out); }, {4}, dtype::float64),
            cumsum(a).to_vector<double>());
  const Array large = array<int64_t>({300, 1000});
  EXPECT_EQ(into([&](const Array& out) { sum(large, {.out = out}); }, {}, dtype::float16), V{1300});
  EXPECT_EQ(into([&](const Array& out) { sum(large, {.out = out}); }, {}, dtype::uint8), V{20});
}

TEST(Reductions, SpreadOfHalvesIsRoundedOnce) {
  // Deviations of about 30 whose squares sum beyond float16, and digits it does not have.
  const Array a = array<float>({-300, -299.75F, 300, 301.25F}).astype(dtype::float16);
  const Array wide = a.astype(dtype::float64);
  EXPECT_EQ(std::isinf(var(a).item<float>()), var(wide).item<double>() > 65520);
  EXPECT_EQ(catena::std(a).item<float>(), catena::std(wide).astype(dtype::float16).item<float>());
  const Array b = array<float>({1, 1.125F, 1.25F, 2}).astype(dtype::bfloat16);
  EXPECT_EQ(var(b).item<float>(),
            var(b.astype(dtype::float64)).astype(dtype::bfloat16).item<float>());
}

}  // namespace
}  // namespace catena
