// Host access to elements: spans, views over strides, iteration, memory of others.
#undef NDEBUG  // operator() of HostView checks its positions in this file
#include "catena/array/host_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena {
namespace {

TEST(HostViewTest, SpanOfAContiguousArray) {
  const Array a = arange(6).reshape({2, 3});
  const std::span<int64_t> s = a.span<int64_t>();
  ASSERT_EQ(s.size(), 6u);
  s[4] = 40;
  EXPECT_EQ(a(1, 1).item<int64_t>(), 40);
  const Array row = a[1];
  EXPECT_EQ(row.span<const int64_t>().front(), 3);
  const Array none_there = zeros({0, 3}), turned = a.T();
  EXPECT_EQ(none_there.span<double>().size(), 0u);
  EXPECT_THROW(a.span<float>(), DtypeError);
  EXPECT_THROW(turned.span<int64_t>(), ShapeError);
}

TEST(HostViewTest, ElementsOverAnyStrides) {
  const Array a = arange(12, dtype::int32).reshape({3, 4});
  const auto m = host_view<int32_t, 2>(a(Slice(none, none, -1), Slice(none, none, 2)));
  EXPECT_EQ(m.extent(0), 3);
  EXPECT_EQ(m.extent(1), 2);
  EXPECT_EQ(m.size(), 6);
  EXPECT_EQ(m(0, 0), 8);
  EXPECT_EQ(m(2, 1), 2);
  m(2, 1) = -5;
  EXPECT_EQ(a(0, 2).item<int32_t>(), -5);
  EXPECT_EQ((host_view<const int32_t, 0>(a(1, 1))()), 5);
}

TEST(HostViewTest, PositionsAreChecked) {
  const auto m = host_view<double, 2>(zeros({2, 3}));
  EXPECT_THROW(m.at(2, 0), IndexError);
  EXPECT_THROW(m.at(0, -1), IndexError);
  EXPECT_THROW(m(0, 3), IndexError);
  EXPECT_THROW((host_view<double, 1>(zeros({2, 3}))), ShapeError);
  EXPECT_THROW((host_view<float, 2>(zeros({2, 3}))), DtypeError);
}

TEST(HostViewTest, IteratesInCOrder) {
  const Array a = arange(24).reshape({2, 3, 4});
  for (const Array& view : {a, a.transpose({2, 0, 1}), a(Slice(), Slice(none, none, -2))}) {
    const auto v = host_view<const int64_t, 3>(view);
    EXPECT_EQ(std::vector<int64_t>(v.begin(), v.end()), view.to_vector<int64_t>());
  }
  const auto empty = host_view<const int64_t, 2>(arange(0).reshape({3, 0}));
  EXPECT_EQ(empty.begin(), empty.end());
  const auto t = host_view<int64_t, 2>(a[0].T());
  std::fill(t.begin(), t.end(), 9);
  EXPECT_EQ(a[0].to_vector<int64_t>(), std::vector<int64_t>(12, 9));
  EXPECT_EQ(a(1, 0, 0).item<int64_t>(), 12);
  const auto found = std::find(t.begin(), t.end(), 8);
  EXPECT_EQ(found, t.end());
}

TEST(HostViewTest, RowsAreViews) {
  const Array a = zeros({3, 2});
  int64_t i = 0;
  for (const Array& row : rows(a)) row.fill(i++);
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{0, 0, 1, 1, 2, 2}));
  EXPECT_THROW(rows(scalar_array(1)), ShapeError);
}

TEST(ForeignMemoryTest, BorrowedSpansAreTheSameMemory) {
  std::vector<float> values{1, 2, 3, 4};
  const Array a = borrow_array(std::span(values), {2, 2});
  a *= 2;
  EXPECT_EQ(values, (std::vector<float>{2, 4, 6, 8}));
  EXPECT_THROW(borrow_array(std::span(values), {3}), ShapeError);
  EXPECT_THROW(borrow_array(nullptr, {3}, dtype::int8), ValueError);
  char bytes[16] = {};
  EXPECT_THROW(borrow_array(reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(bytes) | 1), {1},
                            dtype::float32),
               ValueError);
}

TEST(ForeignMemoryTest, AdoptedMemoryIsDeletedOnceAtTheEnd) {
  int deleted = 0;
  auto* memory = static_cast<double*>(std::malloc(6 * sizeof(double)));
  std::iota(memory, memory + 6, 0.0);
  const auto deleter = [&](void* p) {
    EXPECT_EQ(p, memory);
    std::free(p);
    ++deleted;
  };
  Array column;
  {
    const Array a = adopt_array(memory, {2, 3}, dtype::float64, cpu(0), deleter);
    column = a(Slice(), 1);
  }
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(column.to_vector<double>(), (std::vector<double>{1, 4}));
  column = Array();
  EXPECT_EQ(deleted, 1);
  EXPECT_THROW(adopt_array(&deleted, {1}, dtype::int8, cpu(0), {}), ValueError);
}

}  // namespace
}  // namespace catena
