// Numbers that a dtype does not hold; extents and counts that cannot be.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"

namespace catena {
namespace {

TEST(NumberTest, MustFitTheElements) {
  const Array bytes = zeros({2}, dtype::uint8), small = zeros({2}, dtype::int8);
  const auto refused = [](const char* who, const char* number, const char* type, const char* range,
                          auto call) {
    expect_contains(error_of<ValueError>(call), {who, number, type, range});
  };
  refused("full:", "300", "int8", "-128 to 127", [] { full({2}, 300, dtype::int8); });
  refused("full:", "-1", "uint64", "0 to 18446744073709551615",
          [] { full({2}, -1, dtype::uint64); });
  refused("full_like:", "300", "uint8", "0 to 255", [&] { full_like(bytes, 300); });
  refused("fill:", "-1", "uint8", "0 to 255", [&] { bytes.fill(-1); });
  refused("fill:", "nan", "uint8", "0 to 255", [&] { bytes.fill(NAN); });
  refused("fill:", "inf", "int8", "-128 to 127", [&] { small.fill(INFINITY); });
  refused("fill:", "255", "int8", "-128 to 127", [&] { small.fill(255.5); });
  refused("assign:", "300", "uint8", "0 to 255", [&] { bytes.assign(300); });
  refused("set_at:", "300", "uint8", "0 to 255", [&] { bytes.set_at({0}, 300); });
  refused("set_at:", "300", "uint8", "0 to 255", [&] { bytes.set_at({array({0})}, 300); });
  refused("set_at:", "300", "uint8", "0 to 255", [&] { bytes.set_at({bytes < 1}, 300); });
  refused("add_at:", "300", "uint8", "0 to 255", [&] { bytes.add_at({array({0})}, 300); });
  refused("pad:", "300", "int8", "-128 to 127", [&] { pad(small, 1, PadMode::kConstant, 300); });
  refused("add:", "300", "int8", "-128 to 127", [&] { small + 300; });
  EXPECT_EQ(bytes.to_vector<int>(), (std::vector<int>{0, 0}));
}

// In the order of NumPy: no value of a number hides that an array cannot be cast.
TEST(NumberTest, IsCheckedAfterTheDtypesOfArrays) {
  const Array fractions = zeros({2}), whole = zeros({2}, dtype::int32);
  expect_contains(error_of<DtypeError>([&] { remainder(-6, fractions, Dtype::kUInt32); }),
                  {"remainder:", "float64 cannot be cast to uint32"});
  expect_contains(error_of<DtypeError>([&] { remainder(fractions, -6, Dtype::kUInt32); }),
                  {"remainder:", "float64 cannot be cast to uint32"});
  expect_contains(error_of<ValueError>([&] { remainder(-300, whole, Dtype::kInt8); }),
                  {"remainder:", "-300", "int8"});
}

TEST(NumberTest, ThatFitIsStored) {
  const Array bytes = zeros({1}, dtype::uint8);
  bytes.fill(255.9);
  EXPECT_EQ(bytes.item<int>(), 255);
  bytes.fill(-0.9);
  EXPECT_EQ(bytes.item<int>(), 0);
  EXPECT_EQ(full({}, -128, dtype::int8).item<int>(), -128);
  EXPECT_EQ(full({}, 5, dtype::bool_).item<int>(), 1);
  EXPECT_EQ(full({}, 0x1p63, dtype::uint64).item<uint64_t>(), uint64_t{1} << 63);
  EXPECT_EQ(full({}, std::numeric_limits<int64_t>::min(), dtype::int64).item<int64_t>(),
            std::numeric_limits<int64_t>::min());
  EXPECT_THROW(full({}, 0x1p63, dtype::int64), ValueError);
  EXPECT_TRUE(std::isnan(full({}, NAN, dtype::float16).item<double>()));
}

TEST(ExtentTest, NegativeOnesAreNamed) {
  expect_contains(error_of<ShapeError>([] { zeros({2, -1}); }), {"zeros", "(2, -1)", "negative"});
  expect_contains(error_of<ShapeError>([] { ones(-1); }), {"ones", "(-1,)"});
  expect_contains(error_of<ShapeError>([] { empty({-1}); }), {"empty", "(-1,)"});
  expect_contains(error_of<ShapeError>([] { full({-1}, 2); }), {"full", "(-1,)"});
  expect_contains(error_of<ShapeError>([] { eye(-1); }), {"eye", "-1"});
}

TEST(ExtentTest, MoreThanThereIsMemoryFor) {
  expect_contains(error_of<Error>([] { linspace(0, 1, int64_t{1} << 60); }),
                  {"1152921504606846976", "float64"});
  expect_contains(error_of<Error>([] { histogram(arange(3), int64_t{1} << 60); }),
                  {"1152921504606846977", "float64"});
  expect_contains(
      error_of<ValueError>([] { histogram(arange(3), std::numeric_limits<int64_t>::max()); }),
      {"histogram", "bin"});
}

}  // namespace
}  // namespace catena
