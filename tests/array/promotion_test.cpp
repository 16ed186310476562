// Dtypes of element-wise results, and comparisons across dtypes that share no wider one.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/sets.h"

namespace catena {
namespace {

TEST(Promotion, Int64AndUint64CompareExactly) {
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
  EXPECT_EQ(union1d(most, array<double>({0.5})).dtype(), dtype::float64);
  const Array out = ones({1}, dtype::float32);
  EXPECT_EQ(equal(most, above, out).item<float>(), 0);
  EXPECT_THROW(equal(most, above, zeros({2}, dtype::bool_)), ShapeError);
  const Array kept = ones({1}, dtype::bool_);
  equal(most, above, {kept, zeros({1}, dtype::bool_)});
  EXPECT_TRUE(kept.item<bool>());
  EXPECT_EQ(logical_and(a, b).shape(), (Shape{5, 5}));
}

TEST(Promotion, ArithmeticOfBoolIsInt8) {
  const Array t = ones({2}, dtype::bool_);
  for (const Array& a :
       {floor_divide(t, t), remainder(t, t), fmod(t, t), power(t, t), square(t), reciprocal(t)})
    EXPECT_EQ(a.dtype(), dtype::int8);
  EXPECT_THROW(positive(t), DtypeError);
  EXPECT_THROW(negative(t), DtypeError);
}

TEST(Promotion, FloatFunctionsOfMixedIntegersTakeTheNarrowestLoop) {
  const Array a = ones({2}, dtype::int8), b = ones({2}, dtype::uint8), c = ones({2}, dtype::uint16);
  EXPECT_EQ(arctan2(a, b).dtype(), dtype::float16);
  EXPECT_EQ(hypot(a, c).dtype(), dtype::float32);
  EXPECT_EQ(arctan2(a, 2).dtype(), dtype::float16);
  EXPECT_EQ(arctan2(ones({2}, dtype::bool_), 2).dtype(), dtype::float64);
}

}  // namespace
}  // namespace catena
