#include "catena/array/array.h"

#include <gtest/gtest.h>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

std::vector<double> values(const Array& a) { return a.to_vector<double>(); }
using V = std::vector<double>;

TEST(Indexing, IntegersAndSlicesAreViews) {
  const Array a = arange(24).reshape({2, 3, 4});
  EXPECT_EQ(a(1, 2, 3).item<int>(), 23);
  EXPECT_EQ(a(-1, Slice(), 0).to_vector<double>(), (V{12, 16, 20}));
  EXPECT_EQ(a(0, Slice(none, none, -2), Slice(1, 3)).shape(), (Shape{2, 2}));
  EXPECT_EQ(values(a(0, Slice(none, none, -2), Slice(1, 3))), (V{9, 10, 1, 2}));
  EXPECT_EQ(a(ellipsis, newaxis, 1).shape(), (Shape{2, 3, 1}));
  a(0, 0).fill(7);
  EXPECT_EQ(values(a(0, 0)), (V{7, 7, 7, 7}));
  EXPECT_THROW(a(2), IndexError);
  EXPECT_THROW(a(0, 0, 0, 0), IndexError);
  EXPECT_THROW(a(ellipsis, ellipsis), IndexError);
  EXPECT_THROW(a(Slice(0, 2, 0)), ValueError);
}

TEST(Indexing, SlicesClampAsPython) {
  const Array a = arange(5);
  EXPECT_EQ(values(a(Slice(-100, 100))), (V{0, 1, 2, 3, 4}));
  EXPECT_EQ(a(Slice(4, 1)).size(), 0);
  EXPECT_EQ(values(a(Slice(100, none, -1))), (V{4, 3, 2, 1, 0}));
  EXPECT_EQ(values(a(Slice(none, 0, -3))), (V{4, 1}));
}

TEST(Indexing, LengthIsTheFirstExtent) {
  EXPECT_EQ(zeros({3, 2}).length(), 3);
  EXPECT_EQ(zeros({0, 2}).length(), 0);
  EXPECT_THROW(zeros({}).length(), ShapeError);
}

TEST(Reshape, SharesMemoryWhereStridesAllow) {
  const Array a = arange(12).reshape({3, 4});
  EXPECT_TRUE(a.reshape({2, -1}).shares_memory_with(a));
  EXPECT_FALSE(a.T().reshape({12}).shares_memory_with(a));
  EXPECT_EQ(values(a.T().reshape({12})), (V{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  // Splitting an axis of a padded view needs no copy.
  const Array wide = arange(24).reshape({4, 6})(Slice(), Slice(0, 4));
  EXPECT_TRUE(wide.reshape({2, 2, 2, 2}).shares_memory_with(wide));
  EXPECT_EQ(values(wide.reshape({2, 2, 2, 2})(1, 1, 1)), (V{20, 21}));
  EXPECT_THROW(a.reshape({5, -1}), ShapeError);
  EXPECT_THROW(a.reshape({-1, -1}), ShapeError);
  EXPECT_EQ(zeros({0, 3}).reshape({3, 0}).shape(), (Shape{3, 0}));
}

TEST(Views, OfAnotherDtypeMustBeAligned) {
  const Array bytes = arange(40).astype(Dtype::kUInt8), rows = bytes.reshape({4, 10});
  EXPECT_EQ(bytes(Slice(8, 16)).view(Dtype::kInt64).size(), 1);
  EXPECT_EQ(bytes(Slice(1, 1)).view(Dtype::kInt64).size(), 0);
  EXPECT_EQ(bytes(Slice(3, 11)).copy().view(Dtype::kInt64).size(), 1);
  EXPECT_EQ(rows(Slice(0, 1), Slice(0, 8)).view(Dtype::kInt32).shape(), (Shape{1, 2}));
  for (const Array& odd : {bytes(Slice(3, 11)), rows(Slice(), Slice(0, 8))}) {
    expect_contains(error_of<ValueError>([&] { odd.view(Dtype::kInt64); }),
                    {"view: elements of int64 must lie at multiples of 8 bytes"});
  }
}

TEST(Views, ThatFailKeepNoMemory) {
  const auto owner = std::make_shared<int>();
  double number = 1;
  {
    const Array a = borrow_array(&number, {1, 1}, dtype::float64, cpu(0), owner);
    EXPECT_GT(owner.use_count(), 1);
    for (int i = 0; i < 3; ++i) EXPECT_THROW(a.broadcast_to({-1, 1000}), ShapeError);
    EXPECT_THROW(a.broadcast_to({int64_t{1} << 40, int64_t{1} << 40}), Error);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(Views, KeepContiguityFlagsRight) {
  const Array a = arange(24).reshape({2, 3, 4});
  EXPECT_TRUE(a.is_contiguous());
  EXPECT_FALSE(a.T().is_contiguous());
  EXPECT_TRUE(a.T().is_fortran_contiguous());
  EXPECT_TRUE(a[1].is_contiguous());
  EXPECT_FALSE(a(Slice(), 0).is_contiguous());
  EXPECT_TRUE(a(Slice(0, 1), 0).is_contiguous());
}

TEST(Views, ViewsOfNothingMayHaveAnyStride) {
  const Array a = zeros({0, 8}, dtype::float32)(ellipsis, Slice(none, none, 2));
  EXPECT_EQ(a.view(dtype::int16).shape(), (Shape{0, 8}));
  EXPECT_THROW(zeros({2, 8}, dtype::float32)(ellipsis, Slice(none, none, 2)).view(dtype::int16),
               ShapeError);
}

TEST(Assign, HandlesOverlapCastAndBroadcast) {
  Array a = arange(6);
  a(Slice(1, none)).assign(a(Slice(none, -1)));
  EXPECT_EQ(values(a), (V{0, 0, 1, 2, 3, 4}));
  Array b = zeros({2, 3}, dtype::int32);
  b.assign(array({1.9, -1.9, 3.0}));
  EXPECT_EQ(values(b), (V{1, -1, 3, 1, -1, 3}));
  EXPECT_THROW(b.assign(arange(4)), ShapeError);
}

TEST(InPlace, OverlappingViewsGiveTheRightResult) {
  Array a = arange(6);
  a(Slice(1, none)) += a(Slice(none, -1));
  EXPECT_EQ(values(a), (V{0, 1, 3, 5, 7, 9}));
  Array i = arange(3);
  EXPECT_THROW(i += 0.5, DtypeError);
}

TEST(Devices, CpuDevicesAreDistinct) {
  const Array a = ones({3}, {dtype::float32, cpu(0)}), b = ones({3}, {dtype::float32, cpu(1)});
  try {
    add(a, b);
    FAIL();
  } catch (const DeviceError& e) {
    expect_contains(e.what(), {"cpu:0 and cpu:1"});
  }
  EXPECT_EQ(values(a + b.to("cpu:0")), (V{2, 2, 2}));
  EXPECT_TRUE(a.to("cpu:0").same_body(a));
  EXPECT_FALSE(a.copy_to("cpu:0").shares_memory_with(a));
}

TEST(Item, NeedsOneElement) {
  EXPECT_EQ(scalar_array(3.5).item<double>(), 3.5);
  EXPECT_EQ(array({7}).item<int>(), 7);
  EXPECT_THROW(arange(2).item(), ShapeError);
}

TEST(WriteCounter, CountsInPlaceWritesOnly) {
  Array a = zeros({3});
  const auto version = a.storage()->version.load();
  const Array unused = a + 1;
  EXPECT_EQ(a.storage()->version.load(), version);
  a += 1;
  a[0].fill(3);
  EXPECT_GE(a.storage()->version.load(), version + 2);
}

TEST(Errors, SayWhatCameIn) {
  EXPECT_THROW(Array::uninitialized(Shape(25, 1), dtype::float32), ShapeError);
  EXPECT_THROW(ones({2}).data<float>(), DtypeError);
  EXPECT_THROW(add(Array(), 1), ValueError);
  EXPECT_THROW(subtract(array({true}), array({false})), DtypeError);
  EXPECT_THROW(bitwise_and(array({1.5}), 1), DtypeError);
}

TEST(Promotion, InOperations) {
  EXPECT_EQ((array({1.f}) * 2.5).dtype(), dtype::float32);
  EXPECT_EQ((array<int8_t>({1}) + array<int16_t>({1})).dtype(), dtype::int16);
  EXPECT_EQ((array<int8_t>({1}) / array<int8_t>({2})).dtype(), dtype::float64);
  EXPECT_EQ(exp(array<int8_t>({1})).dtype(), dtype::float16);
  EXPECT_EQ((array({1}) < 2).dtype(), dtype::bool_);
  EXPECT_EQ((array({1}) + array({2.f})).dtype(), dtype::float64);
  EXPECT_THROW(array<int8_t>({1}) + 1000, ValueError);
}

TEST(Text, IsNumPys) {
  EXPECT_EQ(to_string(array({1., 2.5, -3.})), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(arange(6).reshape({2, 3}).to_string(), "[[0 1 2]\n [3 4 5]]");
  EXPECT_EQ(array({1.f, 2.f}).repr(), "array([1., 2.], dtype=float32)");
  EXPECT_EQ(array({1, 2}).repr(), "array([1, 2], dtype=int32)");
  EXPECT_EQ(to_string(array({true, false})), "[ True False]");
  EXPECT_EQ(to_string(scalar_array(1.0)), "1.0");
  EXPECT_EQ(to_string(array({1e10, 1.})), "[1.e+10 1.e+00]");
  EXPECT_EQ(to_string(arange(2000)), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(zeros({0, 3}).repr(), "array([], shape=(0, 3), dtype=float64)");
}

}  // namespace
}  // namespace catena
