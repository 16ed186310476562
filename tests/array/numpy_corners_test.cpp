// Corner cases of NumPy that the array routines once got wrong; found by tests/oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/numeric.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sets.h"
#include "catena/array/statistics.h"

namespace catena {
namespace {

TEST(NumpyCorners, MeanOfNothingIsNan) {
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item<double>()));
  EXPECT_TRUE(std::isnan(var(zeros({0})).item<double>()));
  const auto columns = mean(zeros({0, 2}, dtype::float32), 0).to_vector<float>();
  EXPECT_TRUE(std::isnan(columns.at(0)) && std::isnan(columns.at(1)));
  EXPECT_EQ(sum(zeros({0})).item<double>(), 0);
}

TEST(NumpyCorners, MeansAreQuotients) {
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

TEST(NumpyCorners, AWiderOutWidensSums) {
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

TEST(NumpyCorners, AverageOfIntegersIsFloat64) {
  const Array a = array<int8_t>({1, 2}), weights = array<float>({1, 2});
  EXPECT_EQ(average(a, weights).dtype(), dtype::float64);
  EXPECT_EQ(average(a, weights).item<double>(), 5.0 / 3);
  EXPECT_EQ(average(weights, a).dtype(), dtype::float32);
}

TEST(NumpyCorners, Int64AndUint64CompareExactly) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Array a = array<int64_t>({kMost, -1, kLeast, 7, 0}).reshape({5, 1});
  const Array b = array<uint64_t>({uint64_t{1} << 63, ~uint64_t{0}, uint64_t{kMost}, 7, 0});
  const auto ai = a.to_vector<int64_t>();
  const auto bi = b.to_vector<uint64_t>();
  const auto check = [&](const Array& ab, const Array& ba, const auto& by_value) {
    EXPECT_EQ(ab.dtype(), dtype::bool_);
    for (size_t i = 0; i < 5; ++i) {
      for (size_t j = 0; j < 5; ++j) {
        const auto x = __int128(ai[i]), y = __int128(bi[j]);
        EXPECT_EQ(ab(int64_t(i), int64_t(j)).item<bool>(), by_value(x, y)) << i << ' ' << j;
        EXPECT_EQ(ba(int64_t(i), int64_t(j)).item<bool>(), by_value(y, x)) << i << ' ' << j;
      }
    }
  };
  check(equal(a, b), equal(b, a), [](auto x, auto y) { return x == y; });
  check(not_equal(a, b), not_equal(b, a), [](auto x, auto y) { return x != y; });
  check(less(a, b), less(b, a), [](auto x, auto y) { return x < y; });
  check(less_equal(a, b), less_equal(b, a), [](auto x, auto y) { return x <= y; });
  check(greater(a, b), greater(b, a), [](auto x, auto y) { return x > y; });
  check(greater_equal(a, b), greater_equal(b, a), [](auto x, auto y) { return x >= y; });

  const Array most = array<int64_t>({kMost}), above = array<uint64_t>({uint64_t{1} << 63});
  EXPECT_FALSE(array_equal(most, above));
  EXPECT_FALSE(isin(most, above).item<bool>());
  EXPECT_EQ(isin(a.ravel(), b).to_vector<bool>(),
            (std::vector<bool>{true, false, false, true, true}));
  EXPECT_EQ(isin(b, a, true).to_vector<bool>(),
            (std::vector<bool>{true, true, false, false, false}));
  const Array out = ones({1}, dtype::float32);
  EXPECT_EQ(equal(most, above, out).item<float>(), 0);
  EXPECT_THROW(equal(most, above, zeros({2}, dtype::bool_)), ShapeError);
  const Array kept = ones({1}, dtype::bool_);
  equal(most, above, {kept, zeros({1}, dtype::bool_)});
  EXPECT_TRUE(kept.item<bool>());
  EXPECT_EQ(logical_and(a, b).shape(), (Shape{5, 5}));
}

TEST(NumpyCorners, DivisorsOfTheLowestInteger) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  const Array a = array<int32_t>({6, 0, kLeast, 7}), b = full({4}, kLeast, dtype::int32);
  EXPECT_EQ(gcd(a, b).dtype(), dtype::int32);
  EXPECT_EQ(gcd(a, b).to_vector<int32_t>(), (std::vector<int32_t>{2, kLeast, kLeast, 1}));
  EXPECT_EQ(gcd(b, a).to_vector<int32_t>(), (std::vector<int32_t>{2, kLeast, kLeast, 1}));
  EXPECT_EQ(lcm(a, b).to_vector<int32_t>(), (std::vector<int32_t>{kLeast, 0, kLeast, kLeast}));
  EXPECT_EQ(lcm(array<int8_t>({-128}), array<int8_t>({6})).item<int>(), -128);
}

TEST(NumpyCorners, TrianglesOfFarDiagonals) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Array a = ones({2, 3});
  EXPECT_EQ(tri(2, 3, kMost).shape(), (Shape{2, 3}));
  for (const int64_t far : {kMost, int64_t{3}, int64_t{100}}) {
    EXPECT_EQ(sum(tri(2, 3, far)).item<double>(), 6);
    EXPECT_EQ(sum(tril(a, far)).item<double>(), 6);
    EXPECT_EQ(sum(triu(a, far)).item<double>(), 0);
  }
  for (const int64_t far : {kLeast, int64_t{-2}, int64_t{-100}}) {
    EXPECT_EQ(sum(tri(2, 3, far)).item<double>(), 0);
    EXPECT_EQ(sum(tril(a, far)).item<double>(), 0);
    EXPECT_EQ(sum(triu(a, far)).item<double>(), 6);
  }
}

TEST(NumpyCorners, SpreadOfHalvesIsRoundedOnce) {
  // Deviations of about 30 whose squares sum beyond float16, and digits it does not have.
  const Array a = array<float>({-300, -299.75F, 300, 301.25F}).astype(dtype::float16);
  const Array wide = a.astype(dtype::float64);
  EXPECT_EQ(std::isinf(var(a).item<float>()), var(wide).item<double>() > 65520);
  EXPECT_EQ(catena::std(a).item<float>(), catena::std(wide).astype(dtype::float16).item<float>());
  const Array b = array<float>({1, 1.125F, 1.25F, 2}).astype(dtype::bfloat16);
  EXPECT_EQ(var(b).item<float>(),
            var(b.astype(dtype::float64)).astype(dtype::bfloat16).item<float>());
}

TEST(NumpyCorners, ArithmeticOfBoolIsInt8) {
  const Array t = ones({2}, dtype::bool_);
  for (const Array& a :
       {floor_divide(t, t), remainder(t, t), fmod(t, t), power(t, t), square(t), reciprocal(t)})
    EXPECT_EQ(a.dtype(), dtype::int8);
  EXPECT_THROW(positive(t), DtypeError);
  EXPECT_THROW(negative(t), DtypeError);
}

TEST(NumpyCorners, FloatFunctionsOfMixedIntegersTakeTheNarrowestLoop) {
  const Array a = ones({2}, dtype::int8), b = ones({2}, dtype::uint8), c = ones({2}, dtype::uint16);
  EXPECT_EQ(arctan2(a, b).dtype(), dtype::float16);
  EXPECT_EQ(hypot(a, c).dtype(), dtype::float32);
  EXPECT_EQ(arctan2(a, 2).dtype(), dtype::float16);
  EXPECT_EQ(arctan2(ones({2}, dtype::bool_), 2).dtype(), dtype::float64);
}

TEST(NumpyCorners, RollaxisCountsNegativeStartsFromTheEnd) {
  const Array a = zeros({2, 3, 4});
  EXPECT_EQ(rollaxis(a, 0, -1).shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(rollaxis(a, 2, -3).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(rollaxis(a, 0, 3).shape(), (Shape{3, 4, 2}));
  EXPECT_THROW(rollaxis(a, 0, 4), IndexError);
}

TEST(NumpyCorners, BatchesOfEmptyProductsAreZero) {
  const Array c = matmul(ones({3, 2, 0}), ones({1, 0, 4}));
  EXPECT_EQ(c.shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(c.to_vector<double>(), std::vector<double>(24, 0));
}

TEST(NumpyCorners, ViewsOfNothingMayHaveAnyStride) {
  const Array a = zeros({0, 8}, dtype::float32)(ellipsis, Slice(none, none, 2));
  EXPECT_EQ(a.view(dtype::int16).shape(), (Shape{0, 8}));
  EXPECT_THROW(zeros({2, 8}, dtype::float32)(ellipsis, Slice(none, none, 2)).view(dtype::int16),
               ShapeError);
}

TEST(NumpyCorners, SigmoidReachesTheSmallestNumbers) {
  const float y = sigmoid(array<float>({-90.0F})).item<float>();
  EXPECT_NEAR(y, std::exp(-90.0), 4 * std::numeric_limits<float>::denorm_min());
  EXPECT_GT(y, 0.0F);
  EXPECT_EQ(sigmoid(array<float>({90.0F})).item<float>(), 1.0F);
}

}  // namespace
}  // namespace catena
