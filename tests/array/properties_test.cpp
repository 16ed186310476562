// What an array says about itself, other views of it, its truth value, and copies between it and
// the host in either order.
#include <gtest/gtest.h>

#include <cmath>

#include "array/devices.h"
#include "catena/array/array.h"
#include "catena/array/math.h"
#include "catena/array/nested.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

using test::device_name;
using test::V;
using test::values;

class Properties : public test::OnDevice {};
CATENA_ON_DEVICES(Properties);

TEST_P(Properties, TellLayoutDtypeAndDevice) {
  const Array a = counting({2, 3}, Dtype::kFloat32);
  EXPECT_EQ(a.shape(), (Shape{2, 3}));
  EXPECT_EQ(a.shape(-1), 3);
  EXPECT_EQ(a.strides(), (Strides{12, 4}));
  EXPECT_EQ(a.T().strides(), (Strides{4, 12}));
  EXPECT_EQ(a(Slice(), Slice(none, none, -2)).strides(), (Strides{12, -8}));
  EXPECT_EQ(a.ndim(), 2);
  EXPECT_EQ(a.size(), 6);
  EXPECT_EQ(a.itemsize(), 4);
  EXPECT_EQ(a.nbytes(), 24);
  EXPECT_EQ(a(Slice(), 1).nbytes(), 8) << "without gaps";
  EXPECT_EQ(a.device(), GetParam());
  EXPECT_EQ(a.T().device(), GetParam());
  EXPECT_EQ(values(a.T()), (V{0, 3, 1, 4, 2, 5}));
  const ArrayFlags flags = a.T().flags();
  EXPECT_TRUE(flags.f_contiguous);
  EXPECT_FALSE(flags.c_contiguous || flags.owndata);
  const Array empty = zeros({0, 3}, GetParam()), number = scalar_array(1.5, GetParam());
  EXPECT_EQ(empty.size() + empty.nbytes() + number.ndim(), 0);
}

TEST_P(Properties, PointAtTheirElements) {
  const Array a = counting({2, 3}, Dtype::kFloat32);
  EXPECT_EQ(a.raw_data(), a.data<float>());
  EXPECT_EQ(a(1, 2).data<float>() - a.data<float>(), 5);
  EXPECT_EQ(device_of_pointer(a.raw_data()), GetParam().is_cuda() ? GetParam() : cpu(0));
  EXPECT_THROW(a.data<double>(), DtypeError);
  const Array column = Array::from_storage(a.storage(), 4, {2}, {12}, a.dtype());
  EXPECT_EQ(values(column), (V{1, 4}));
  EXPECT_THROW(Array::from_storage(a.storage(), 4, {3000}, {12}, a.dtype()), Error);
  const Array made = Array::uninitialized({2, 2}, Dtype::kInt8, GetParam());
  EXPECT_EQ(made.device(), GetParam());
  made.fill(3);
  EXPECT_EQ(values(made), (V{3, 3, 3, 3}));
}

TEST_P(Properties, SetShapeNeverCopies) {
  const Array a = counting({2, 3});
  Array handle = a;
  handle.set_shape({3, -1});
  EXPECT_EQ(handle.shape(), (Shape{3, 2}));
  EXPECT_TRUE(handle.shares_memory_with(a));
  EXPECT_EQ(a.shape(), (Shape{2, 3}));
  Array turned = a.T();
  const std::string said = error_of<Error>([&] { turned.set_shape({6}); });
  EXPECT_EQ(said.find("set_shape: the strides"), 0u) << said;
  EXPECT_EQ(turned.shape(), (Shape{3, 2})) << "as it was";
  EXPECT_THROW(turned.set_shape({4}), ShapeError);
  turned.set_shape({3, 1, 2});
  EXPECT_EQ(values(turned), values(a.T()));
  Array empty = zeros({0, 3}, GetParam());
  empty.set_shape({3, 0});
  EXPECT_EQ(empty.shape(), (Shape{3, 0}));
}

TEST_P(Properties, ReducedViewAsAnotherDtype) {
  const Array a = counting({2, 2, 3}, Dtype::kFloat32);
  const Array bits = a.reduced_view(Dtype::kInt32);
  EXPECT_EQ(bits.shape(), (Shape{12}));
  EXPECT_TRUE(bits.shares_memory_with(a));
  EXPECT_EQ(values(bits.view(Dtype::kFloat32)), values(a));
  EXPECT_EQ(a.reduced_view(Dtype::kInt64).shape(), (Shape{6}));
  EXPECT_EQ(a.reduced_view(Dtype::kInt16).shape(), (Shape{24}));
  const Array part = a(Slice(), 0);  // rows of three with a gap between
  EXPECT_EQ(part.reduced_view(Dtype::kInt16).shape(), (Shape{2, 6}));
  EXPECT_THROW(part.reduced_view(Dtype::kInt64), ShapeError);
  EXPECT_EQ(ones({1, 1}, GetParam()).reduced_view(Dtype::kInt32).shape(), (Shape{2}));
}

TEST_P(Properties, TruthOfOneElement) {
  EXPECT_TRUE(numbers({2}).truth());
  EXPECT_FALSE(numbers({0}).truth());
  EXPECT_TRUE(numbers({NAN}).truth());
  EXPECT_TRUE(scalar_array(true, GetParam()).truth());
  EXPECT_FALSE(zeros({1, 0, 4}, GetParam()).truth()) << "no elements";
  expect_contains(error_of<Error>([&] { numbers({0, 0}).truth(); }), {"use all() or any()"});
  EXPECT_THROW(numbers({0, 0}).truth(), ValueError);
  EXPECT_THROW(Array().truth(), ValueError);
}

TEST_P(Properties, NestedLists) {
  const Array a = counting({2, 3}, Dtype::kInt32);
  EXPECT_EQ((tolist<int, 2>(a)), (std::vector<std::vector<int>>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ((tolist<double, 2>(a.T())), (std::vector<V>{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ((tolist<int, 1>(a[1])), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ((tolist<float, 0>(a(1, 2))), 5.0f);
  EXPECT_EQ((tolist<bool, 1>(a[0] > 0)), (std::vector<bool>{false, true, true}));
  EXPECT_EQ((tolist<int, 2>(zeros({2, 0}, GetParam()))), (std::vector<std::vector<int>>(2)));
  EXPECT_EQ(values(array(tolist<double, 2>(a))), values(a)) << "and back";
  EXPECT_THROW((tolist<int, 1>(a)), ShapeError);
}

TEST_P(Properties, ArgumentsOfExtremesInAnotherDtype) {
  const Array a = on(array({{3.0, 7.0, 7.0}, {9.0, -1.0, 2.0}}));
  const Array low = argmin(a, {.axes = 1, .dtype = Dtype::kInt32});
  EXPECT_EQ(low.dtype(), Dtype::kInt32);
  EXPECT_EQ(values(low), (V{0, 1}));
  EXPECT_EQ(argmax(a, {.keepdims = true, .dtype = Dtype::kUInt8}).shape(), (Shape{1, 1}));
  EXPECT_EQ(argmax(a, {.axes = 0, .dtype = Dtype::kFloat64}).dtype(), Dtype::kFloat64);
  const Array out = zeros({2, 1}, {Dtype::kInt8, GetParam()});
  EXPECT_TRUE(argmax(a, {.axes = 1, .keepdims = true, .out = out}).same_body(out));
  EXPECT_EQ(values(out), (V{1, 0}));
  EXPECT_TRUE(a.argmin({.axes = 1, .keepdims = true, .out = out}).same_body(out));
  EXPECT_EQ(values(out), (V{0, 1}));
  EXPECT_EQ(a.argmax({.axes = 1, .dtype = Dtype::kInt16}).dtype(), Dtype::kInt16);
  EXPECT_EQ(argmax(a, 1).dtype(), Dtype::kInt64);
  EXPECT_THROW(argmax(a, {.axes = 1, .out = out}), ShapeError);
  EXPECT_THROW(argmax(a, {.axes = 1, .where = out}), ValueError) << "takes no mask";
}

// Host memory of a copy in the order asked for, with the elements of `a`.
void expect_copied(const Array& got, const Array& a, bool fortran) {
  EXPECT_TRUE(got.device().is_cpu());
  EXPECT_FALSE(got.shares_memory_with(a));
  EXPECT_EQ(testing::difference(got, a), "");
  EXPECT_EQ(fortran ? got.is_fortran_contiguous() : got.is_contiguous(), true);
}

TEST_P(Properties, GetInEitherOrder) {
  const Array a = counting({2, 3, 4}), strided = a(Slice(), Slice(none, none, -2));
  expect_copied(a.get({.order = 'C'}), a, false);
  expect_copied(a.get({.order = 'F'}), a, true);
  expect_copied(a.get({.order = 'A'}), a, false);
  expect_copied(a.T().get({.order = 'A'}), a.T(), true);
  expect_copied(strided.get({.order = 'F'}), strided, true);
  expect_copied(strided.get({.order = 'A'}), strided, false);
  EXPECT_EQ(zeros({0, 3}, GetParam()).get({.order = 'F'}).shape(), (Shape{0, 3}));
  EXPECT_THROW(a.get({.order = 'K'}), ValueError);
  EXPECT_THROW(Array().get({.order = 'C'}), ValueError);
}

TEST_P(Properties, GetIntoAnArrayIgnoresTheOrder) {
  const Array square = counting({2, 2}), wide = counting({2, 3});
  for (const Array& a : {square, square.T(), wide, wide.T()}) {
    for (const bool fortran : {false, true}) {
      const Shape shape = a.shape(), turned(shape.rbegin(), shape.rend());
      const Array out =
          fortran ? zeros(turned, {a.dtype(), cpu(0)}).T() : zeros(shape, {a.dtype(), cpu(0)});
      for (const char order : {'C', 'F', 'A'}) {
        out.fill(0);
        a.get({.order = order, .out = out});
        EXPECT_EQ(testing::difference(out, a), "") << order << " into " << fortran;
      }
      EXPECT_THROW(a.get({.order = 'K', .out = out}), ValueError);
    }
  }
}

TEST_P(Properties, GetIntoAnArray) {
  const Array a = counting({2, 3}), rows = zeros({2, 3}, cpu(0)),
              columns = zeros({3, 2}, cpu(0)).T();
  for (const Array& out : {rows, columns}) {
    const auto version = out.storage()->version.load();
    EXPECT_TRUE(a.get({.out = out}).same_body(out));
    EXPECT_EQ(testing::difference(out, a), "");
    EXPECT_GT(out.storage()->version.load(), version);
    const Array turned = counting({3, 2}).T();
    turned.get({.out = out});
    EXPECT_EQ(testing::difference(out, turned), "");
  }
  const Array narrow = zeros({2, 3}, {Dtype::kFloat32, cpu(0)}), other = zeros({3, 2}, cpu(0)),
              gaps = zeros({2, 6}, cpu(0))(Slice(), Slice(none, none, 2)),
              locked = zeros({3}, cpu(0)).broadcast_to({2, 3});
  EXPECT_THROW(a.get({.out = narrow}), DtypeError);
  EXPECT_THROW(a.get({.out = other}), ShapeError);
  EXPECT_THROW(a.get({.out = gaps}), ValueError);
  EXPECT_THROW(a.get({.out = locked}), ValueError);
}

TEST_P(Properties, GetOnAStreamWithAndWithoutWaiting) {
  const Stream stream = Stream::create(GetParam());
  const Array a = counting({50, 20});
  expect_copied((a + 1).get({.order = 'F', .stream = stream}), a + 1, true);
  const Array later = (a * 2).get({.order = 'F', .stream = stream, .blocking = false});
  stream.synchronize();
  expect_copied(later, a * 2, true);
  EXPECT_THROW(a.get({.stream = Stream::default_of(cpu(7))}), DeviceError);
}

TEST_P(Properties, SetFromAnyLayoutIntoEitherOrder) {
  const Array host = testing::counting_array({2, 3}), turned = testing::counting_array({3, 2}).T(),
              strided = testing::counting_array({2, 6})(Slice(), Slice(none, none, 2));
  const Array rows = zeros({2, 3}, GetParam()), columns = zeros({3, 2}, GetParam()).T();
  const Stream stream = Stream::create(GetParam());
  for (const Array& target : {rows, columns}) {
    for (const Array& source : {host, turned, strided}) {
      target.fill(-1);
      target.set(source);
      EXPECT_EQ(testing::difference(target, source), "");
      target.fill(-1);
      target.set(source, stream);
      current_stream(GetParam()).wait(stream);
      EXPECT_EQ(testing::difference(target, source), "");
    }
  }
  const Array gaps = zeros({2, 6}, GetParam())(Slice(), Slice(none, none, 2));
  EXPECT_THROW(gaps.set(host), ValueError);
}

TEST(CurrentGpu, IsTheCurrentDeviceOrTheFirstGpu) {
  EXPECT_EQ(current_gpu(), cuda_device(0)) << "while a CPU is current";
  const int count = device_count(DeviceType::kCuda);
  if (count == 0) {
    EXPECT_THROW(zeros({2}).to_gpu(), DeviceError);
    GTEST_SKIP() << "SKIPPED: needs a GPU: " << unavailable_reason(DeviceType::kCuda);
  }
  const DeviceScope scope(cuda_device(count - 1));
  EXPECT_EQ(current_gpu(), cuda_device(count - 1));
  EXPECT_EQ(zeros({2}, cpu(0)).to_gpu().device(), cuda_device(count - 1));
  EXPECT_EQ(zeros({2}, cpu(0)).to_gpu(0).device(), cuda_device(0));
}

}  // namespace
}  // namespace catena
