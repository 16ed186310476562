// Arguments in braces and arguments left out: {400} is a list of one, {} is the default.
#include <gtest/gtest.h>

#include <cmath>

#include "array/devices.h"
#include "catena/array/along_axis.h"
#include "catena/array/calculus.h"
#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/array/sorting.h"
#include "catena/array/statistics.h"

namespace catena {
namespace {

void expect_parts(const std::vector<Array>& parts, const std::vector<Shape>& shapes) {
  ASSERT_EQ(parts.size(), shapes.size());
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].shape(), shapes[i]) << i;
}

TEST(BracesTest, OnePositionIsACut) {
  const Array x = arange(1600).reshape({800, 2});
  expect_parts(split(x, {400}), {{400, 2}, {400, 2}});
  expect_parts(split(x, {100}), {{100, 2}, {700, 2}});
  expect_parts(split(x, {1}, 1), {{800, 1}, {800, 1}});
  expect_parts(split(x, {400, 600}), {{400, 2}, {200, 2}, {200, 2}});
  expect_parts(split(x, {}), {{800, 2}});
  EXPECT_EQ(split(x, 400).size(), 400u);
  EXPECT_EQ(split(x, size_t{4}).size(), 4u);
  expect_parts(split(x, Axes{400}), {{400, 2}, {400, 2}});
  expect_parts(array_split(x, {799}), {{799, 2}, {1, 2}});
  EXPECT_EQ(array_split(x, 3).size(), 3u);
  expect_parts(vsplit(x, {300}), {{300, 2}, {500, 2}});
  expect_parts(hsplit(x, {1}), {{800, 1}, {800, 1}});
  EXPECT_EQ(hsplit(x, 2).size(), 2u);
  const Array cube = zeros({2, 3, 5});
  expect_parts(dsplit(cube, {2}), {{2, 3, 2}, {2, 3, 3}});
  const Array m = arange(6).reshape({2, 3});
  EXPECT_EQ(split(m, {1}, 0)[1].to_vector<int>(), (std::vector<int>{3, 4, 5}));
}

TEST(BracesTest, EmptyOnesAreTheDefault) {
  EXPECT_EQ(eye(3, {}, 1).to_vector<int>(), (std::vector<int>{0, 1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(eye(2, 3).shape(), (Shape{2, 3}));
  EXPECT_EQ(tri(2, {}, 1).to_vector<int>(), (std::vector<int>{1, 1, 1, 1}));
  expect_contains(error_of<ShapeError>([] { eye(2, -1); }), {"eye", "-1"});
  expect_contains(error_of<ShapeError>([] { tri(2, -1); }), {"tri", "-1"});
  EXPECT_EQ(linspace(0, 1, {}).size(), 50);
  EXPECT_EQ(logspace(0, 1, {}, true, {}).size(), 50);
  EXPECT_EQ(logspace(0, 2, 3, true, {}).to_vector<int>(), (std::vector<int>{1, 10, 100}));
  EXPECT_EQ(geomspace(1, 2, {}).size(), 50);
  EXPECT_EQ(linspace_with_step(0, 49, {}).second, 1);
  EXPECT_EQ(tril_indices(2, 0, {})[0].size(), 3);
  EXPECT_EQ(triu_indices(2, 0, {})[0].size(), 3);
  EXPECT_EQ(vander(arange(3), {}, true).shape(), (Shape{3, 3}));
  EXPECT_EQ(rot90(arange(4).reshape({2, 2}), {}, {0, 1}).to_vector<int>(),
            (std::vector<int>{1, 3, 0, 2}));
  EXPECT_TRUE(isclose(array({1.0}), array({1 + 1e-7}), {}, {}, true).item<bool>());
  EXPECT_TRUE(allclose(1.0, array({1 + 1e-7}), {}, {}, true));
  EXPECT_FALSE(allclose(1.0, array({1 + 1e-7}), 0.0, 0.0));
  random::seed(1);
  EXPECT_GT(random::normal({100}, {}, {}, dtype::float32).std().item<float>(), 0.5f);
  EXPECT_GT(random::uniform({100}, {}, {}, dtype::float32).max().item<float>(), 0.5f);
  EXPECT_EQ(percentile(arange(5), 50, {}, QuantileMethod::kLower).item<int>(), 2);
}

// A yes or no whose default is yes does not take {} for no.
template <class... Arguments>
constexpr bool kChoiceTakes = requires(Arguments... arguments) {
  random::choice(int64_t{5}, Shape{2}, arguments...);
};
static_assert(kChoiceTakes<bool> && kChoiceTakes<> && !kChoiceTakes<int>);

TEST(BracesTest, ListsOfOneKeepTheirAxis) {
  const Array m = arange(5);
  EXPECT_EQ(percentile(m, {25}).shape(), Shape{1});
  EXPECT_EQ(percentile(m, {25, 75}).to_vector<int>(), (std::vector<int>{1, 3}));
  EXPECT_EQ(percentile(m, 25).shape(), Shape{});
  EXPECT_EQ(quantile(m, {0.5}).shape(), Shape{1});
  EXPECT_EQ(nanquantile(m, {0.5}).shape(), Shape{1});
  EXPECT_EQ(nanpercentile(m, {50}).to_vector<int>(), std::vector<int>{2});
}

TEST(BracesTest, PositionsIndex) {
  const Array a = arange(6).reshape({3, 2});
  EXPECT_EQ(a({0, 2}).to_vector<int>(), (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(a({0, 2}, 1).to_vector<int>(), (std::vector<int>{1, 5}));
  a({0, 2}, Slice(0, 1)) += 10;
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{10, 1, 2, 3, 14, 5}));
}

TEST(FormsTest, AxisAndKeepdimsAsNumPyWritesThem) {
  const Array m = arange(6).reshape({2, 3});
  EXPECT_EQ(amax(m, 1, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(amax(m, 1, true).to_vector<int>(), (std::vector<int>{2, 5}));
  EXPECT_EQ(amax(m, 1, false).shape(), Shape{2});
  EXPECT_EQ(sum(m, 0, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(var(m, 1, true).shape(), (Shape{2, 1}));
  EXPECT_NEAR(var(m, 1, true).to_vector<double>()[0], 2.0 / 3, 1e-12);
  EXPECT_EQ(var(m, 1, 1).to_vector<double>()[0], 1.0);  // ddof
  EXPECT_EQ(count_nonzero(m, 1, true).to_vector<int>(), (std::vector<int>{2, 3}));
  EXPECT_EQ(m.max(0, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(m.std(0, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(m.sum(-1, true).to_vector<int>(), (std::vector<int>{3, 12}));
  EXPECT_EQ(flip(m, 0).to_vector<int>(), (std::vector<int>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(flip(m, {0}).to_vector<int>(), (std::vector<int>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(squeeze(zeros({1, 2, 1}), 0).shape(), (Shape{2, 1}));
  EXPECT_EQ(linalg::norm(m, {}, 1).shape(), Shape{2});
  EXPECT_EQ(linalg::norm(m, 1, 0, true).shape(), (Shape{1, 3}));
}

TEST(ItemTest, DoesNotWrapAround) {
  expect_contains(error_of<ValueError>([] { full({}, 300).item<uint8_t>(); }),
                  {"item", "300", "uint8", "0 to 255"});
  expect_contains(error_of<ValueError>([] { full({}, -1).item<uint64_t>(); }), {"item", "-1"});
  expect_contains(error_of<ValueError>([] { full({}, 1e10).item<int>(); }), {"item", "int32"});
  expect_contains(error_of<ValueError>([] { full({}, NAN).item<int>(); }), {"item", "nan"});
  EXPECT_EQ(full({}, 255).item<uint8_t>(), 255);
  EXPECT_EQ(full({}, 2.7).item<int>(), 2);
  EXPECT_TRUE(full({}, 300).item<bool>());
  EXPECT_EQ(full({}, 300).item<float>(), 300);
}

TEST(NumbersTest, ClassesOfPlainNumbersAreBool) {
  const double nan = NAN;
  if (isnan(nan) && !isinf(nan) && !isfinite(nan) && signbit(-0.0f)) SUCCEED();
  static_assert(std::is_same_v<decltype(isnan(1.5)), bool>);
  static_assert(std::is_same_v<decltype(catena::isfinite(1.5f)), bool>);
  static_assert(std::is_same_v<decltype(isnan(Array())), Array>);
  EXPECT_TRUE(catena::isinf(HUGE_VAL));
  EXPECT_FALSE(catena::isnan(1.0));
  EXPECT_TRUE(catena::signbit(-1.0));
}

TEST(DeviceName, OfADtypeAsksBack) {
  expect_contains(error_of<DeviceError>([] { zeros({2}, "float32"); }),
                  {"'float32' is not a device", "did you mean dtype::float32?"});
  const std::string other = error_of<DeviceError>([] { zeros({2}, "gpu0"); });
  expect_contains(other, {"'gpu0' is not a device"});
  EXPECT_EQ(other.find("dtype"), std::string::npos);
}

}  // namespace
}  // namespace catena
