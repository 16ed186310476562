// Memory orders of results. The expected strides are those that NumPy gives for the same calls.
#include "catena/array/memory_order.h"

#include <gtest/gtest.h>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/error.h"

namespace catena {
namespace {

// 0, 1, ... in C order of the shape, with the axes in another order in memory (outermost first).
Array counted(const Shape& shape, const Axes& order, Dtype dtype = Dtype::kFloat32) {
  const MemoryOrder memory(order);
  Array a = Array::uninitialized(shape, dtype, current_device(), memory);
  a.assign(arange(element_count(shape)).reshape(shape));
  return a;
}

// Strides in elements.
Strides steps(const Array& a) {
  Strides result;
  for (const int64_t stride : a.strides()) result.push_back(stride / a.itemsize());
  return result;
}

std::vector<double> numbers(const Array& a) { return a.to_vector<double>(); }

const Axes kLast{0, 2, 3, 1}, kFirst{0, 1, 2, 3}, kFortran{3, 2, 1, 0};
const Shape kShape{2, 3, 4, 5};
const Strides kLastSteps{60, 1, 15, 3}, kFirstSteps{60, 20, 5, 1}, kFortranSteps{1, 2, 6, 24};

TEST(MemoryOrder, KnowsItsAxesAndStrides) {
  const MemoryOrder last(kLast);
  EXPECT_FALSE(last.is_c());
  EXPECT_EQ(last.axes(4), kLast);
  EXPECT_EQ(last.inverse(4), (Axes{0, 3, 1, 2}));
  EXPECT_EQ(last.strides(kShape, 4), (Strides{240, 4, 60, 12}));
  EXPECT_TRUE(MemoryOrder(kFirst).is_c());
  EXPECT_EQ(MemoryOrder(kFirst), MemoryOrder());
  EXPECT_EQ(MemoryOrder().axes(2), (Axes{0, 1}));
  EXPECT_EQ(MemoryOrder::fortran(3).axes(3), (Axes{2, 1, 0}));
  EXPECT_EQ(MemoryOrder::of({1, 20, 4}).axes(3), (Axes{1, 2, 0}));
  EXPECT_EQ(MemoryOrder::of({-1, -20, 20}).axes(3), (Axes{1, 2, 0}));
}

TEST(MemoryOrder, RefusesWhatIsNotAPermutation) {
  EXPECT_THROW(MemoryOrder({0, 0}), ValueError);
  EXPECT_THROW(MemoryOrder({0, 2}), ValueError);
  EXPECT_THROW(MemoryOrder({-1, 0}), ValueError);
  EXPECT_THROW(MemoryOrder({1, 0}).axes(3), ShapeError);
}

TEST(MemoryOrder, OfArrays) {
  for (const Device device : testing::devices()) {
    const DeviceScope scope(device);
    const Array last = counted(kShape, kLast);
    EXPECT_EQ(steps(last), kLastSteps);
    EXPECT_EQ(last.order(), MemoryOrder(kLast));
    EXPECT_TRUE(last.is_dense());
    EXPECT_FALSE(last.is_contiguous());
    EXPECT_TRUE(counted(kShape, kFirst).order().is_c());
    EXPECT_TRUE(counted(kShape, kFirst).is_dense());
    EXPECT_EQ(counted(kShape, kFortran).order(), MemoryOrder::fortran(4));
    const Array part = last(Slice(), Slice(0, 2));
    EXPECT_EQ(part.order(), MemoryOrder(kLast));
    EXPECT_FALSE(part.is_dense());
    EXPECT_FALSE(last(Slice(none, none, -1)).is_dense());
    EXPECT_FALSE(arange(3).broadcast_to({2, 3}).is_dense());
    EXPECT_TRUE(zeros({0, 3}).T().is_dense());
  }
}

TEST(MemoryOrder, CopiesAndCasts) {
  for (const Device device : testing::devices()) {
    const DeviceScope scope(device);
    const Array last = counted(kShape, kLast);
    EXPECT_EQ(steps(last.copy()), kFirstSteps);
    EXPECT_EQ(steps(last.copy('K')), kLastSteps);
    EXPECT_EQ(steps(last.copy('A')), kFirstSteps);
    EXPECT_EQ(steps(last.copy('F')), kFortranSteps);
    EXPECT_EQ(steps(last.T().copy('A')), steps(last.copy().T().copy('C')));
    EXPECT_EQ(steps(counted(kShape, kFortran).copy('A')), kFortranSteps);
    for (const char order : {'C', 'F', 'A', 'K'})
      EXPECT_EQ(numbers(last.copy(order)), numbers(arange(120))) << order;
    EXPECT_EQ(steps(last.astype(Dtype::kFloat64)), kLastSteps);
    EXPECT_EQ(steps(last.astype(Dtype::kFloat64, true, 'C')), kFirstSteps);
    EXPECT_EQ(steps(last.astype(Dtype::kFloat32, true)), kLastSteps);
    EXPECT_TRUE(last.astype(Dtype::kFloat32, false).same_body(last));
    EXPECT_EQ(steps(last.astype(Dtype::kFloat32, false, 'C')), kFirstSteps);
    EXPECT_EQ(numbers(last.astype(Dtype::kInt32)), numbers(arange(120)));
    EXPECT_EQ(steps(copy(last)), kLastSteps);
    EXPECT_EQ(steps(array(last)), kLastSteps);
    EXPECT_EQ(steps(last.contiguous()), kFirstSteps);
    EXPECT_EQ(steps(last.get()), kFirstSteps);
    EXPECT_THROW(last.copy('X'), ValueError);
    EXPECT_THROW(last.astype(Dtype::kInt32, true, 'k'), ValueError);
    // A part with gaps, and one against the direction of memory: the order stays, the gaps go.
    EXPECT_EQ(steps(last(Slice(), Slice(0, 2)).copy('K')), (Strides{40, 1, 10, 2}));
    EXPECT_EQ(steps(last(Slice(none, none, -1)).copy('K')), kLastSteps);
    EXPECT_EQ(numbers(last(Slice(none, none, -1)).copy('K')),
              numbers(last(Slice(none, none, -1)).copy()));
  }
}

TEST(MemoryOrder, BetweenDevices) {
  const Array last = counted(kShape, kLast);
  for (const Device device : testing::devices()) {
    const Array there = last.to(device), back = there.to(cpu(0));
    EXPECT_EQ(steps(there), kLastSteps) << device;
    EXPECT_EQ(numbers(back), numbers(last)) << device;
    EXPECT_EQ(steps(last(Slice(), Slice(0, 2)).copy_to(device)), (Strides{40, 1, 10, 2}));
    const Array target = zeros_like(there);
    target.assign(last * 2);
    EXPECT_EQ(numbers(target), numbers(last * 2)) << device;
  }
}

TEST(MemoryOrder, LikeArrays) {
  const Array last = counted(kShape, kLast);
  EXPECT_EQ(steps(empty_like(last)), kLastSteps);
  EXPECT_EQ(steps(zeros_like(last)), kLastSteps);
  EXPECT_EQ(steps(ones_like(last, Dtype::kFloat64)), kLastSteps);
  EXPECT_EQ(steps(full_like(last, 7)), kLastSteps);
  EXPECT_EQ(numbers(full_like(last, 7)), std::vector<double>(120, 7));
  EXPECT_EQ(steps(zeros_like(last.T())), (Strides{3, 15, 1, 60}));
  EXPECT_EQ(steps(zeros_like(arange(4).broadcast_to({3, 4}))), (Strides{1, 3}));
}

TEST(MemoryOrder, ElementwiseResults) {
  for (const Device device : testing::devices()) {
    const DeviceScope scope(device);
    const Array last = counted(kShape, kLast), first = counted(kShape, kFirst),
                fortran = counted(kShape, kFortran);
    EXPECT_EQ(steps(last + last), kLastSteps);
    EXPECT_EQ(numbers(last + last), numbers(first + first));
    EXPECT_EQ(steps(last * 2), kLastSteps);
    EXPECT_EQ(steps(-last), kLastSteps);
    EXPECT_EQ(steps(last > 3), kLastSteps);
    // The operands disagree about all axes but the first: C order.
    EXPECT_EQ(steps(last + first), kFirstSteps);
    EXPECT_EQ(steps(first + last), kFirstSteps);
    EXPECT_EQ(steps(fortran + first), kFirstSteps);
    EXPECT_EQ(numbers(last + first), numbers(first + first));
    EXPECT_EQ(numbers(fortran + last), numbers(first + first));
    // One element along an axis, or a repeated one, has no order there.
    const Array bias = arange(3).astype(Dtype::kFloat32).reshape({1, 3, 1, 1});
    EXPECT_EQ(steps(last + bias), kLastSteps);
    EXPECT_EQ(steps(bias + last), kLastSteps);
    EXPECT_EQ(steps(last + bias.broadcast_to(kShape)), kLastSteps);
    EXPECT_EQ(steps(fortran + arange(5)), kFortranSteps);
    EXPECT_EQ(numbers(last + bias), numbers(first + bias));
    EXPECT_EQ(steps(where(last > 50, last, first * 0)), kFirstSteps);
    EXPECT_EQ(steps(where(last > 50, last, 0)), kLastSteps);
    EXPECT_EQ(numbers(where(last > 50, last, 0)), numbers(where(first > 50, first, 0)));
    // Directions do not matter.
    EXPECT_EQ(steps(arange(6)[Slice(none, none, -1)] + 1), (Strides{1}));
    EXPECT_EQ(steps(last(Slice(), Slice(), Slice(none, none, -1)) + 1), kLastSteps);
    EXPECT_EQ(numbers(last(Slice(), Slice(), Slice(none, none, -1)) + 1),
              numbers(first(Slice(), Slice(), Slice(none, none, -1)) + 1));
  }
}

TEST(MemoryOrder, ResultsThatAreGiven) {
  const Array last = counted(kShape, kLast), first = counted(kShape, kFirst);
  for (const Axes& order : {kLast, kFirst, kFortran}) {
    Array out = counted(kShape, order);
    add(last, first, out);
    EXPECT_EQ(numbers(out), numbers(first * 2));
    out += out;
    EXPECT_EQ(numbers(out), numbers(first * 4));
    out.fill(3);
    EXPECT_EQ(numbers(out), std::vector<double>(120, 3));
    out.assign(last);
    EXPECT_EQ(numbers(out), numbers(first));
    // The output overlaps an input with other strides.
    const Array square = counted({4, 4}, {1, 0});
    add(square, square.T(), square);
    EXPECT_EQ(numbers(square),
              numbers(arange(16).reshape({4, 4}) + arange(16).reshape({4, 4}).T()));
  }
  Array outer = zeros({2, 6, 4, 5}).transpose({0, 2, 3, 1});
  outer(Slice(), Slice(), Slice(), Slice(1, 4)).fill(2);
  EXPECT_EQ(sum(outer).item<double>(), 2 * 120);
}

TEST(MemoryOrder, Joins) {
  for (const Device device : testing::devices()) {
    const DeviceScope scope(device);
    const Array last = counted(kShape, kLast), first = counted(kShape, kFirst);
    for (const int axis : {0, 1, 2, 3}) {
      const Array joined = concatenate({last, last}, axis);
      EXPECT_EQ(joined.order(), MemoryOrder(kLast)) << axis;
      EXPECT_TRUE(joined.is_dense());
      EXPECT_EQ(numbers(joined), numbers(concatenate({first, first}, axis))) << axis;
      EXPECT_TRUE(concatenate({last, first}, axis).is_contiguous()) << axis;
      EXPECT_EQ(numbers(concatenate({last, first}, axis)), numbers(joined)) << axis;
    }
    const Array matrix = counted({2, 3}, {1, 0});
    EXPECT_EQ(steps(stack({matrix, matrix}, 0)), (Strides{6, 1, 2}));
    EXPECT_EQ(numbers(stack({matrix, matrix}, 0)),
              numbers(stack({matrix.copy(), matrix.copy()}, 0)));
  }
}

}  // namespace
}  // namespace catena
