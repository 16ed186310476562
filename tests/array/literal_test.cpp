// array() from what C++ programs have: literals of any depth, numbers, containers; shapes and
// dtypes as they are written.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena {
namespace {

using V = std::vector<double>;
V values(const Array& a) { return a.to_vector<double>(); }

void expect_array(const Array& a, const Shape& shape, Dtype dtype, const V& expected) {
  EXPECT_EQ(a.shape(), shape);
  EXPECT_EQ(a.dtype(), dtype);
  EXPECT_EQ(values(a), expected);
}

TEST(LiteralTest, OneTypeKeepsItsDtype) {
  expect_array(array({1, 2, 3}), {3}, dtype::int32, {1, 2, 3});
  expect_array(array({{1.f, 2.f}, {3.f, 4.f}}), {2, 2}, dtype::float32, {1, 2, 3, 4});
  expect_array(array({{1, 2}}), {1, 2}, dtype::int32, {1, 2});
  expect_array(array({{3}, {4}}), {2, 1}, dtype::int32, {3, 4});
  expect_array(array({{true, false}, {false, true}}), {2, 2}, dtype::bool_, {1, 0, 0, 1});
  expect_array(array({0}), {1}, dtype::int32, {0});
  expect_array(array<int8_t>({{1, 2}, {3, 4}}), {2, 2}, dtype::int8, {1, 2, 3, 4});
}

TEST(LiteralTest, MixedNumbersAreOfThePromotedDtype) {
  expect_array(array({1, 2.5}), {2}, dtype::float64, {1, 2.5});
  expect_array(array({{1, 2.5}, {3, 4}}), {2, 2}, dtype::float64, {1, 2.5, 3, 4});
  expect_array(array({true, 2}), {2}, dtype::int32, {1, 2});
  const Array a = array({1.5, NAN});  // NAN is a float
  EXPECT_EQ(a.dtype(), dtype::float64);
  EXPECT_EQ(values(a)[0], 1.5);
  EXPECT_TRUE(std::isnan(values(a)[1]));
}

TEST(LiteralTest, ThreeDimensionsAndMore) {
  expect_array(array({{{1., 2.}}, {{3., 4.}}}), {2, 1, 2}, dtype::float64, {1, 2, 3, 4});
  expect_array(array({{{{1}, {2}}}}), {1, 1, 2, 1}, dtype::int32, {1, 2});
  EXPECT_EQ(array({{}, {}}).shape(), (Shape{2, 0}));
}

TEST(LiteralTest, OneNumberHasNoAxes) {
  expect_array(array(3.0), {}, dtype::float64, {3});
  expect_array(array(0), {}, dtype::int32, {0});
  expect_array(array(true), {}, dtype::bool_, {1});
  expect_array(array(3, dtype::float32), {}, dtype::float32, {3});
}

TEST(LiteralTest, OptionsChooseDtypeAndDevice) {
  expect_array(array({1, 2, 3}, dtype::float32), {3}, dtype::float32, {1, 2, 3});
  expect_array(array({{1.5, 2.}, {3., 4.}}, dtype::int8), {2, 2}, dtype::int8, {1, 2, 3, 4});
  expect_array(array({1, 2.5}, dtype::float16), {2}, dtype::float16, {1, 2.5});
  EXPECT_EQ(array({1, 2}, "cpu:1").device(), cpu(1));
  EXPECT_EQ(array({{1, 2}}, cpu(1)).device(), cpu(1));
  EXPECT_EQ(array({{true}}, std::string("cpu:1")).device(), cpu(1));
  EXPECT_EQ(array({1, 2}, std::optional<Device>()).device(), current_device());
  const Array a = array({1, 2.5}, {dtype::float32, "cpu:1"});
  EXPECT_EQ(a.device(), cpu(1));
  EXPECT_EQ(a.dtype(), dtype::float32);
}

TEST(LiteralTest, NumbersMustFitTheDtypeAskedFor) {
  expect_contains(error_of<ValueError>([] {
                    array({1, 300}, dtype::int8);
                  }),
                  {"array", "300", "int8", "-128 to 127"});
  expect_contains(error_of<ValueError>([] {
                    array({1, 2.5, -1}, dtype::uint8);
                  }),
                  {"array", "-1", "uint8", "0 to 255"});
  expect_contains(error_of<ValueError>([] {
                    array({{1.f, NAN}}, dtype::int16);
                  }),
                  {"array", "nan", "int16"});
}

TEST(LiteralTest, ListsMustHaveOneShape) {
  expect_contains(error_of<ShapeError>([] { array({{1, 2}, {3}}); }), {"array", "2", "1"});
  expect_contains(error_of<ShapeError>([] {
                    array({{1, 2.5}, {3}});
                  }),
                  {"array", "length 1", "(2, 2)"});
  expect_contains(error_of<ShapeError>([] { array({1, {2.5, 3}}); }), {"array", "depth 1"});
  expect_contains(error_of<ShapeError>([] { array({{2.5, 3}, 1}); }), {"array", "a number"});
}

TEST(ContainerTest, VectorsAndStdArrays) {
  const std::vector<double> numbers{1, 2};
  expect_array(array(numbers), {2}, dtype::float64, {1, 2});
  expect_array(array(numbers, dtype::int8), {2}, dtype::int8, {1, 2});
  expect_array(array(numbers, {2, 1}, dtype::float32), {2, 1}, dtype::float32, {1, 2});
  expect_array(array(std::array<float, 2>{1, 2}), {2}, dtype::float32, {1, 2});
  expect_array(array(std::vector<bool>{true, false}), {2}, dtype::bool_, {1, 0});
  expect_array(array(std::vector<bool>{true, false}, {2, 1}, dtype::int8), {2, 1}, dtype::int8,
               {1, 0});
  EXPECT_EQ(array(numbers, "cpu:1").device(), cpu(1));
  EXPECT_EQ(array(numbers, {2, 1}, "cpu:1").device(), cpu(1));
  EXPECT_THROW(array(numbers, {3}), ShapeError);
}

TEST(ContainerTest, RowsOfNumbers) {
  const std::vector<std::vector<double>> rows{{1, 2}, {3, 4}};
  expect_array(array(rows), {2, 2}, dtype::float64, {1, 2, 3, 4});
  expect_array(array(rows, dtype::float32), {2, 2}, dtype::float32, {1, 2, 3, 4});
  expect_array(array(std::vector<std::vector<bool>>{{true, false}}), {1, 2}, dtype::bool_, {1, 0});
  EXPECT_EQ(array(std::vector<std::vector<float>>{}).shape(), (Shape{0, 0}));
  expect_contains(error_of<ShapeError>([] {
                    array(std::vector<std::vector<int>>{{1, 2}, {3}});
                  }),
                  {"array", "2", "1"});
}

TEST(ContainerTest, BothSixtyFourBitTypes) {
  expect_array(array({1LL, 2LL}), {2}, dtype::int64, {1, 2});
  expect_array(array({1L}), {1}, dtype::int64, {1});
  expect_array(array(std::vector<unsigned long long>{7}), {1}, dtype::uint64, {7});
  const Array a = array({5});
  EXPECT_EQ(a.to_vector<long long>(), (std::vector<long long>{5}));
  EXPECT_EQ(a.to_vector<unsigned long>(), (std::vector<unsigned long>{5}));
  EXPECT_EQ(a.item<long long>(), 5);
  EXPECT_EQ(dtype_of<long long>, dtype_of<int64_t>);
  EXPECT_EQ(*array({9LL}).data<long long>(), 9);
}

TEST(ShapeTest, OneNumberVectorsAndDeviceNames) {
  EXPECT_EQ(zeros(3).shape(), (Shape{3}));
  EXPECT_EQ(zeros(0).shape(), (Shape{0}));
  EXPECT_EQ(zeros({}).shape(), (Shape{}));
  EXPECT_EQ(values(ones(2, dtype::int8)), (V{1, 1}));
  EXPECT_EQ(empty(size_t{4}).size(), 4);
  EXPECT_EQ(values(full(2, 7)), (V{7, 7}));
  EXPECT_EQ(zeros(std::vector<int64_t>{2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(zeros(std::vector<int>{2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(zeros({2}, "cpu:1").device(), cpu(1));
  EXPECT_EQ(arange(3, "cpu:1").device(), cpu(1));
  expect_array(arange(0, 3, dtype::uint8), {3}, dtype::uint8, {0, 1, 2});
  EXPECT_EQ(arange(0, 10, 4).size(), 3);
}

TEST(ArangeTest, CountsExactlyToTheEndsOfTheTypes) {
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min(),
                    largest = std::numeric_limits<int64_t>::max();
  using I = std::vector<int64_t>;
  EXPECT_EQ(arange(lowest, largest, largest).to_vector<int64_t>(), (I{lowest, -1, largest - 1}));
  EXPECT_EQ(arange(0, largest, largest - 1).to_vector<int64_t>(), (I{0, largest - 1}));
  EXPECT_EQ(arange(largest, lowest, lowest).to_vector<int64_t>(), (I{largest, -1}));
  EXPECT_EQ(arange(5, 0, -2).to_vector<int64_t>(), (I{5, 3, 1}));
  EXPECT_EQ(arange(-3, 3, 2).to_vector<int64_t>(), (I{-3, -1, 1}));
  EXPECT_EQ(arange(3, 3).size(), 0);
  EXPECT_EQ(arange(3, -3).size(), 0);
  EXPECT_EQ(arange(-3, 3, -1).size(), 0);
  const uint64_t end = std::numeric_limits<uint64_t>::max();
  const Array high = arange(end - 2, end);
  EXPECT_EQ(high.dtype(), dtype::uint64);
  EXPECT_EQ(high.to_vector<uint64_t>(), (std::vector<uint64_t>{end - 2, end - 1}));
  expect_contains(error_of<ValueError>([=] { arange(lowest, largest); }), {"arange", "elements"});
}

TEST(PrintTest, Scalars) {
  std::ostringstream text;
  text << ones({1}).item() << " " << Scalar(3) << " " << Scalar(true) << " " << dtype::int8 << " "
       << cpu(1) << " " << Shape{2, 3};
  EXPECT_EQ(text.str(), "1 3 true int8 cpu:1 (2, 3)");
}

}  // namespace
}  // namespace catena
