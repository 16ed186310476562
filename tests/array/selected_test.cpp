// Writing through what an index gives: views, selected elements, broadcast views; temporaries that
// must not be written to or looked into.
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/dlpack.h"
#include "catena/array/host_view.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "devices.h"

namespace catena {
namespace {

using V = std::vector<double>;
V values(const Array& a) { return a.to_vector<double>(); }

template <class To, class From>
concept TemporaryAssignable = requires(To (*make)(), From value) {
  make() = value;
};
static_assert(!TemporaryAssignable<Array, Array>);
static_assert(!TemporaryAssignable<Selected, Array>);
static_assert(!TemporaryAssignable<Selected, Selected>);
static_assert(std::is_copy_assignable_v<Array> && std::is_nothrow_move_constructible_v<Array>);

template <class A>
concept SpansOfTemporaries = requires(A (*make)()) {
  make().template span<double>();
};
static_assert(!SpansOfTemporaries<Array>);

class SelectedTest : public ::testing::TestWithParam<Device> {
 protected:
  Array numbers() const { return arange(-2, 3).to(GetParam()); }
};

TEST_P(SelectedTest, InPlaceOperatorsWriteToTheSource) {
  const Array x = numbers();
  x(x > 0) += 5;
  EXPECT_EQ(values(x), (V{-2, -1, 0, 6, 7}));
  x[x > 5] *= 2;
  EXPECT_EQ(values(x), (V{-2, -1, 0, 12, 14}));
  x(std::vector<int64_t>{0, -1}) -= array({1, 2}, GetParam());
  EXPECT_EQ(values(x), (V{-3, -1, 0, 12, 12}));
  x(array({0, 0}, GetParam())) += 1;  // once, as NumPy
  EXPECT_EQ(values(x), (V{-2, -1, 0, 12, 12}));
  EXPECT_EQ(values(x(x > 0) += 1), (V{13, 13}));
}

TEST_P(SelectedTest, FillAndAssignWriteToTheSource) {
  const Array x = numbers();
  x(x > 0).fill(9);
  EXPECT_EQ(values(x), (V{-2, -1, 0, 9, 9}));
  x(array({1, 0}, GetParam())).assign(array({5, 6}, GetParam()));
  EXPECT_EQ(values(x), (V{6, 5, 0, 9, 9}));
  x[x > 8].assign(3.7);  // cast
  EXPECT_EQ(values(x), (V{6, 5, 0, 3, 3}));
  const Array m = arange(6).reshape(2, 3).to(GetParam());
  m(array({1}, GetParam()), Slice(0, 2)) += 10;
  EXPECT_EQ(values(m), (V{0, 1, 2, 13, 14, 5}));
  EXPECT_THROW(x(x > 0).assign(array({1, 2, 3}, GetParam())), ShapeError);
}

TEST_P(SelectedTest, ViewsWriteAsBefore) {
  const Array x = numbers();
  x(Slice(0, 2)) += 1;
  x[Slice(3, none)].fill(8);
  x(2) -= 4;
  EXPECT_EQ(values(x), (V{-1, 0, -4, 8, 8}));
}

TEST_P(SelectedTest, VariablesAreArraysOfTheirOwn) {
  const Array x = numbers();
  Array y = x(x > 0);
  y += 1;
  auto z = x(x > 0);
  z += 1;
  z.fill(4);
  z.assign(5);
  EXPECT_EQ(values(x), (V{-2, -1, 0, 1, 2}));
  EXPECT_EQ(values(z), (V{5, 5}));
  z = y;
  std::move(z) += 1;  // no longer selected from x
  EXPECT_EQ(values(x), (V{-2, -1, 0, 1, 2}));
  EXPECT_EQ(values(y), (V{3, 4}));
}

TEST_P(SelectedTest, KeepsTheRulesOfTheOperations) {
  const Array x = numbers();
  EXPECT_THROW(x(x > 0) += 0.5, DtypeError);
  EXPECT_THROW(x.astype(dtype::int8)(x > 0).fill(300), ValueError);
  EXPECT_EQ(values(x), (V{-2, -1, 0, 1, 2}));
}

TEST_P(SelectedTest, IndicesInBrackets) {
  const Array x = numbers();
  EXPECT_EQ(values(x[Slice(1, 3)]), (V{-1, 0}));
  EXPECT_TRUE(x[Slice()].shares_memory_with(x));
  EXPECT_EQ(values(x[x > 0]), (V{1, 2}));
  EXPECT_EQ(values(x[array({0, -1}, GetParam())]), (V{-2, 2}));
  EXPECT_EQ(values(x[std::vector<int64_t>{1}]), (V{-1}));
  EXPECT_EQ(values(x(std::vector<int>{1, 0})), (V{-1, -2}));
  EXPECT_EQ(x[newaxis].shape(), (Shape{1, 5}));
  EXPECT_EQ(x[ellipsis].shape(), (Shape{5}));
  EXPECT_EQ(x[0].item<int>(), -2);
  EXPECT_EQ(x[size_t{1}].item<int>(), -1);
}

TEST_P(SelectedTest, BroadcastViewsAreReadOnly) {
  const Array x = numbers();
  Array wide = x.broadcast_to({2, 5});
  EXPECT_FALSE(wide.is_writable());
  EXPECT_FALSE(wide[1].is_writable());
  EXPECT_FALSE(wide.reduced_view().is_writable());
  EXPECT_TRUE(wide.copy().is_writable());
  EXPECT_TRUE(x.is_writable());
  EXPECT_TRUE(x.broadcast_to({5}).is_writable());
  expect_contains(error_of<ValueError>([&] { wide += 1; }),
                  {"add", "(2, 5)", "read-only", "broadcast_to", "copy()"});
  EXPECT_THROW(wide.fill(1), ValueError);
  EXPECT_THROW(wide.assign(x), ValueError);
  EXPECT_THROW(wide.T()(0).fill(1), ValueError);
  EXPECT_THROW(wide.set_at({array({0}, GetParam())}, 1), ValueError);
  EXPECT_THROW(wide(wide > 0) += 1, ValueError);
  EXPECT_THROW(sum(wide, {.axes = 0, .out = wide[0]}), ValueError);
  for (const Array& view : broadcast_arrays({x, zeros({2, 1}, {x.dtype(), GetParam()})})) {
    EXPECT_FALSE(view.is_writable());
    EXPECT_EQ(view.shape(), (Shape{2, 5}));
  }
  EXPECT_EQ(values(x), (V{-2, -1, 0, 1, 2}));
  EXPECT_EQ(values(wide + 1), (V{-1, 0, 1, 2, 3, -1, 0, 1, 2, 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, SelectedTest, ::testing::ValuesIn(testing::devices()),
                         test::device_name);

TEST(BroadcastViewTest, HostAccessIsForReading) {
  const Array wide = ones({2}).broadcast_to({2, 2});
  EXPECT_THROW((host_view<double, 2>(wide)), ValueError);
  EXPECT_EQ((host_view<const double, 2>(wide)(1, 1)), 1);
  EXPECT_THROW(to_dlpack(wide), ValueError);
}

TEST(SliceTest, StepsPastTheEnd) {
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min(),
                    largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(values(arange(10)(Slice(2, 9, largest - 2))), (V{2}));
  EXPECT_EQ(values(arange(3)(Slice(none, none, largest))), (V{0}));
  EXPECT_EQ(values(arange(3)(Slice(none, none, lowest))), (V{2}));
  EXPECT_EQ(values(arange(10)(Slice(2, 9, 3))), (V{2, 5, 8}));
  EXPECT_EQ(arange(9).reshape(3, 3).diagonal(lowest).size(), 0);
  EXPECT_THROW(zeros({3}).reshape({-1, largest, 4}), ShapeError);
}

TEST(CallFormsTest, ListsOfArrays) {
  const Array a = array({1, 2}), b = array({3, 4});
  EXPECT_EQ(stack({a, b}).shape(), (Shape{2, 2}));
  EXPECT_EQ(values(stack({a, b}, 1)), (V{1, 3, 2, 4}));
  EXPECT_EQ(vstack({a, b}).shape(), (Shape{2, 2}));
  EXPECT_EQ(values(hstack({a, b})), (V{1, 2, 3, 4}));
  EXPECT_EQ(dstack({a, b}).shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(values(column_stack({a, b})), (V{1, 3, 2, 4}));
  EXPECT_EQ(broadcast_arrays({a, b.reshape(2, 1)})[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(meshgrid({a, arange(3)})[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(values(choose(array({0, 1}), {a, b})), (V{1, 4}));
  // Positions that choose nothing are not looked at.
  EXPECT_EQ(choose(array({5, 6}).reshape(1, 2), {zeros({0, 2})}).shape(), (Shape{0, 2}));
  EXPECT_EQ(stack(std::vector<Array>{a, b}).shape(), (Shape{2, 2}));
}

TEST(CallFormsTest, NumbersInPlaceOfLists) {
  const Array a = arange(6).reshape(2, 3);
  EXPECT_EQ(a.shape(), (Shape{2, 3}));
  EXPECT_EQ(a.reshape(-1).shape(), (Shape{6}));
  EXPECT_EQ(a.reshape(3, -1).shape(), (Shape{3, 2}));
  EXPECT_EQ(values(einsum("ij,kj->ik", a, a)), (V{5, 14, 14, 50}));
  EXPECT_EQ(values(einsum("ij->j", a)), (V{3, 5, 7}));
  EXPECT_EQ(values(take(a, {2, 0}, 1)), (V{2, 0, 5, 3}));
  EXPECT_EQ(take(a, {1}, 0).shape(), (Shape{1, 3}));
  EXPECT_EQ(take(a, 1, 0).shape(), (Shape{3}));
  EXPECT_EQ(values(a.take({5, 0})), (V{5, 0}));
  EXPECT_EQ(values(take(a, std::vector<int64_t>{4})), (V{4}));
}

}  // namespace
}  // namespace catena
