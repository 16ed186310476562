#include "catena/array/casting.h"

#include <cmath>

#include "array/devices.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

using namespace test;
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

class Casts : public OnDevice {};

TEST_P(Casts, CopytoRefusesWhatNumPyRefuses) {
  const Array a = zeros({2, 3}, {Dtype::kInt32, GetParam()}), f = numbers({1.5, 2.5, 3.5});
  expect_contains(error_of<Error>([&] { copyto(a, f); }),
                  {"float64 to int32 by the rule 'same_kind'"});
  EXPECT_EQ(values(a), V(6, 0));
  copyto(a, f, Casting::kUnsafe);
  EXPECT_EQ(values(a), (V{1, 2, 3, 1, 2, 3}));
  copyto(a, ints({7, 8, 9}));  // int64 to int32: same kind
  EXPECT_EQ(values(a), (V{7, 8, 9, 7, 8, 9}));
  EXPECT_THROW(copyto(a, ints({7, 8, 9}), Casting::kSafe), DtypeError);
  EXPECT_THROW(copyto(a, 1.5), DtypeError);
  EXPECT_THROW(copyto(a.astype(Dtype::kUInt8), 300), ValueError);
  EXPECT_THROW(copyto(a, counting({2}).astype(Dtype::kInt32)), ShapeError);
  const Array mask = greater(a, 7);
  copyto(a, -1, Casting::kSameKind, mask);
  EXPECT_EQ(values(a), (V{7, -1, -1, 7, -1, -1}));
  const Array row = equal(ints({1, 0, 0}), 1);
  copyto(a, counting({2, 1}, Dtype::kInt8), Casting::kSafe, row);
  EXPECT_EQ(values(a), (V{0, -1, -1, 1, -1, -1}));
  EXPECT_THROW(copyto(a, 1, Casting::kSafe, f), DtypeError);
  EXPECT_THROW(copyto(a, 1, Casting::kSafe, Array()), ValueError) << "a mask without a value";
  copyto(a, array({1}, cpu(1)));  // from another device
  EXPECT_EQ(values(a), V(6, 1));
}

TEST_P(Casts, ResultTypes) {
  const Array i8 = ints({1}).astype(Dtype::kInt8), f4 = numbers({1}).astype(Dtype::kFloat32);
  EXPECT_EQ(result_type({i8, 1}), Dtype::kInt8);
  EXPECT_EQ(result_type({i8, 1.5}), Dtype::kFloat64);
  EXPECT_EQ(result_type({f4, 1.5, i8}), Dtype::kFloat32);
  EXPECT_EQ(result_type({1, 2.5}), Dtype::kFloat64);
  EXPECT_EQ(result_type({true, 1}), Dtype::kInt64);
  EXPECT_EQ(common_type({i8, f4}), Dtype::kFloat64);
  EXPECT_EQ(common_type({f4}), Dtype::kFloat32);
  EXPECT_TRUE(can_cast(i8, Dtype::kInt16));
  EXPECT_FALSE(can_cast(f4, Dtype::kInt16, Casting::kSameKind));
}

TEST_P(Casts, Closeness) {
  const Array x = numbers({1, 1e10, kInf, -kInf, kNan, 1e-9}),
              y = numbers({1 + 1e-6, 1.00001e10, kInf, kInf, kNan, 0});
  EXPECT_EQ(values(isclose(x, y)), (V{1, 1, 1, 0, 0, 1}));
  EXPECT_EQ(values(isclose(x, y, 1e-5, 1e-8, true)), (V{1, 1, 1, 0, 1, 1}));
  EXPECT_EQ(values(isclose(numbers({kInf, 1}), numbers({1, kInf}))), (V{0, 0}));
  EXPECT_EQ(values(isclose(ints({1000000, 5}), 1000001)), (V{1, 0}));
  EXPECT_FALSE(allclose(x, y));
  EXPECT_TRUE(allclose(numbers({1, 2}), numbers({1, 2 + 1e-9})));
  EXPECT_TRUE(array_equal(x, x, true));
  EXPECT_FALSE(array_equal(x, x));
  EXPECT_FALSE(array_equal(numbers({1}), numbers({1, 1})));
  EXPECT_TRUE(array_equiv(numbers({1}), numbers({1, 1})));
  EXPECT_FALSE(array_equiv(numbers({1, 1}), numbers({1, 1, 1})));
  EXPECT_TRUE(array_equal(ints({1, 2}), numbers({1, 2})));
}

TEST_P(Casts, OneBoundAndExtremes) {
  const Array a = counting({2, 3});
  EXPECT_EQ(values(clip(a, none, 3)), (V{0, 1, 2, 3, 3, 3}));
  EXPECT_EQ(values(clip(a, 2, none)), (V{2, 2, 2, 3, 4, 5}));
  EXPECT_EQ(values(a.clip(1, numbers({2, 3, 4}))), (V{1, 1, 2, 2, 3, 4}));
  EXPECT_EQ(values(a.max(1)), (V{2, 5}));
  EXPECT_EQ(values(a.min()), (V{0}));
  EXPECT_EQ(values(a.ptp(0)), (V{3, 3, 3}));
  EXPECT_EQ(values(a.argmax(1)), (V{2, 2}));
  EXPECT_EQ(values(a.argmin()), (V{0}));
  EXPECT_THROW(zeros({0}, GetParam()).max(), ValueError);
  EXPECT_THROW(zeros({0}, GetParam()).ptp(), ValueError);
}

TEST_P(Casts, AveragesAndNan) {
  const Array a = counting({2, 3});
  const V got = values(average(a, numbers({1, 2, 3}), 1));
  EXPECT_NEAR(got[0], 8.0 / 6, 1e-15);
  EXPECT_NEAR(got[1], 26.0 / 6, 1e-15);
  EXPECT_EQ(values(average(a, a)), (V{55.0 / 15}));
  EXPECT_EQ(values(average(a)), (V{2.5}));
  EXPECT_EQ(average(ints({1, 2}), ints({1, 1})).dtype(), Dtype::kFloat64);
  EXPECT_THROW(average(a, numbers({0, 0, 0}), 1), ValueError);
  EXPECT_THROW(average(a, numbers({1, 1}), 1), ShapeError);
  EXPECT_THROW(average(a, numbers({1, 1, 1})), ShapeError);
  const Array n = numbers({1, kNan, kNan, kNan, 4, 2}).reshape({3, 2});  // row 1 is empty
  EXPECT_EQ(values(nansum(n, 1)), (V{1, 0, 6}));
  EXPECT_EQ(values(nanprod(n)), (V{8}));
  const V mean = values(nanmean(n, 1)), high = values(nanmax(n, 1)), low = values(nanmin(n, 1));
  EXPECT_EQ(mean[0], 1);
  EXPECT_TRUE(std::isnan(mean[1]) && std::isnan(high[1]) && std::isnan(low[1]));
  EXPECT_EQ(mean[2], 3);
  EXPECT_EQ(high[2], 4);
  EXPECT_EQ(low[2], 2);
  EXPECT_EQ(nanmax(n.astype(Dtype::kFloat16)).dtype(), Dtype::kFloat16);
  EXPECT_EQ(values(nansum(ints({1, 2}))), (V{3}));
}

TEST_P(Casts, MethodsTakeOut) {
  const Array a = numbers({3, 1, 2, 0, 5, 4}).reshape({2, 3});
  const auto written = [](const Array& out, const Array& result) {
    EXPECT_TRUE(result.same_body(out));
    return values(out);
  };
  const Array row = numbers({0, 0, 0}), pair = ints({0, 0});
  EXPECT_EQ(written(row, a.take(ints({5, 0, 2}), none, row)), (V{4, 3, 2}));
  EXPECT_EQ(written(row, a.take({1, 1, 4}, none, row)), (V{1, 1, 5}));
  EXPECT_EQ(written(pair, a.argmax({.axes = 1, .out = pair})), (V{0, 1}));
  EXPECT_EQ(written(pair, a.argmin({.axes = 1, .out = pair})), (V{1, 0}));
  const Array all_of = a.copy();
  EXPECT_EQ(written(all_of, a.clip(1, 4, all_of)), (V{3, 1, 2, 1, 4, 4}));
  EXPECT_EQ(a.clip(1, 4, Dtype::kFloat32).dtype(), Dtype::kFloat32);
  const Array sum = numbers({0}).reshape(Shape{});
  EXPECT_EQ(written(sum, a.trace(0, 0, 1, sum)), (V{8}));
  EXPECT_EQ(values(a.trace(1, 0, 1, Dtype::kFloat32)), (V{5}));
  const Array product = numbers({0, 0});
  EXPECT_EQ(written(product, a.dot(numbers({1, 0, 1}), product)), (V{5, 4}));
  EXPECT_THROW(a.take({0}, none, row), ShapeError);
  EXPECT_THROW(a.dot(numbers({1, 0, 1}), row), ShapeError);
}

TEST_P(Casts, FlagsBaseAndReducedView) {
  const Array a = counting({2, 3, 4}), t = a.T();
  EXPECT_TRUE(a.copy().flags().owndata);
  EXPECT_FALSE(t.flags().owndata);
  EXPECT_TRUE(t.flags().f_contiguous);
  EXPECT_FALSE(t.flags().c_contiguous);
  EXPECT_FALSE(a.copy().base().defined());
  EXPECT_EQ(t.base().storage(), a.storage());
  EXPECT_EQ(values(t(1, 1).base()(Slice(0, 3))), (V{0, 1, 2}));
  EXPECT_EQ(a.reduced_view().shape(), (Shape{24}));
  EXPECT_EQ(a(Slice(), Slice(), Slice(0, 2)).reduced_view().shape(), (Shape{6, 2}));
  EXPECT_EQ(t.reduced_view().shape(), t.shape());
  EXPECT_EQ(values(a(Slice(), 1).reduced_view()), values(a(Slice(), 1)));
  EXPECT_EQ(scalar_array(1).reduced_view().shape(), (Shape{}));
  EXPECT_TRUE(a.view().shares_memory_with(a));
  EXPECT_FALSE(a.view().flags().owndata);
}

TEST_P(Casts, GetAndSet) {
  const Device d = GetParam();
  const Array a = counting({2, 3});
  EXPECT_EQ(values(a.T().get()), values(a.T()));
  EXPECT_TRUE(a.get().device().is_cpu());
  EXPECT_FALSE(a.get().shares_memory_with(a));
  const Stream stream = Stream::create(d);
  const Array host = (a + 1).get(stream);
  stream.synchronize();
  EXPECT_EQ(values(host), (V{1, 2, 3, 4, 5, 6}));
  a.set(host);
  EXPECT_EQ(values(a), values(host));
  const auto version = a.storage()->version.load();
  a.set(host * 2, stream);
  current_stream(d).wait(stream);
  EXPECT_EQ(values(a), (V{2, 4, 6, 8, 10, 12}));
  EXPECT_GT(a.storage()->version.load(), version);
  EXPECT_THROW(a.set(host.astype(Dtype::kFloat32)), DtypeError);
  EXPECT_THROW(a.set(host.reshape({3, 2})), ShapeError);
  EXPECT_THROW(a(Slice(), Slice(0, 2)).set(host(Slice(), Slice(0, 2))), ValueError);
  EXPECT_THROW(a.get(Stream::default_of(cpu(5))), DeviceError);
}

// dtype= and out= as NumPy's same_kind rule has it; UFuncTypeError there is DtypeError here.
TEST_P(Casts, ComputingInADtypeRefusesWhatNumPyRefuses) {
  const Array f = numbers({1.5, 2.5}), i = ints({1, 2}), u = i.astype(Dtype::kUInt8);
  expect_contains(error_of<Error>([&] { add(f, 1, dtype::int32); }),
                  {"add: an input of dtype float64 cannot be cast to int32"});
  EXPECT_THROW(add(i, 1.5, dtype::int32), DtypeError);
  EXPECT_THROW(add(i, u, dtype::uint8), DtypeError);
  EXPECT_THROW(less(f, 2, dtype::int64), DtypeError);
  EXPECT_THROW(logical_and(i, 1, dtype::bool_), DtypeError);
  EXPECT_THROW(add(u, 300, dtype::uint8), ValueError);
  EXPECT_EQ(values(add(i, u, dtype::float32)), (V{2, 4}));
  EXPECT_EQ(values(add(i, 1, dtype::int8)), (V{2, 3}));
  EXPECT_EQ(values(add(u, 300, dtype::int32)), (V{301, 302}));
  EXPECT_EQ(values(subtract(greater(i, 1), greater(i, 0), dtype::int32)), (V{-1, 0}));
  EXPECT_EQ(add(f, 1, dtype::float16).dtype(), Dtype::kFloat16);
  EXPECT_EQ(values(sum(f, ReduceOptions())), V{4});
}

TEST_P(Casts, ProductsRefuseWhatNumPyRefuses) {
  const Array f = numbers({1.5, 2, 3, 4}).reshape({2, 2}), i = f.astype(Dtype::kInt64);
  const Array stack = f.reshape({1, 2, 2}), result = zeros({2, 2}, {Dtype::kInt32, GetParam()});
  std::string said = error_of<Error>([&] { matmul(f, i, dtype::int32); });
  expect_contains(said, {"matmul: an input of dtype float64 cannot be cast to int32"});
  said = error_of<Error>([&] { matmul(f, f, result); });
  expect_contains(said,
                  {"matmul: a result of dtype float64 cannot be stored into an array of dtype "
                   "int32"});
  EXPECT_EQ(values(result), V(4, 0));
  EXPECT_THROW(dot(f, i, dtype::int32), DtypeError);
  EXPECT_THROW(dot(f[0], f[1], zeros({}, {Dtype::kInt32, GetParam()})), DtypeError);
  EXPECT_THROW(dot(stack, stack, dtype::int32), DtypeError);
  EXPECT_THROW(dot(stack, stack, zeros({1, 2, 1, 2}, {Dtype::kInt32, GetParam()})), DtypeError);
  EXPECT_THROW(outer(f, f, dtype::int32), DtypeError);
  EXPECT_THROW(dot(f[0], f[1], zeros({3}, {Dtype::kFloat64, GetParam()})), ShapeError);
  EXPECT_EQ(values(matmul(i, i, dtype::float32)), (V{7, 10, 15, 22}));
  EXPECT_EQ(values(dot(i, i, result)), (V{7, 10, 15, 22}));
}

// NumPy 2: an integer that the dtype does not hold compares by its value.
TEST_P(Casts, ComparisonsWithIntegersOutOfRange) {
  const uint64_t huge = uint64_t{1} << 63;
  struct Case {
    Dtype dtype;
    Scalar number;
    bool above;
  };
  for (const Case& c : {Case{Dtype::kUInt8, -1, false}, Case{Dtype::kUInt8, 300, true},
                        Case{Dtype::kInt8, -129, false}, Case{Dtype::kInt64, huge, true},
                        Case{Dtype::kBool, huge, true}, Case{Dtype::kUInt64, -5, false}}) {
    const Array a = ints({0, 1}).astype(c.dtype);
    const auto expect = [&](const Array& result, bool truth) {
      EXPECT_EQ(result.dtype(), Dtype::kBool);
      EXPECT_EQ(values(result), V(2, truth)) << to_string(c.dtype) << ' ' << to_string(c.number);
    };
    expect(a == c.number, false);
    expect(c.number == a, false);
    expect(a != c.number, true);
    expect(c.number != a, true);
    expect(a < c.number, c.above);
    expect(a <= c.number, c.above);
    expect(c.number > a, c.above);
    expect(c.number >= a, c.above);
    expect(a > c.number, !c.above);
    expect(a >= c.number, !c.above);
    expect(c.number < a, !c.above);
    expect(c.number <= a, !c.above);
  }
  const Array u = ints({7, 8}).astype(Dtype::kUInt8), flags = greater(u, 7);
  EXPECT_EQ(values(less(u, 300, flags)), V(2, 1));
  EXPECT_EQ(values(flags), V(2, 1));
  EXPECT_EQ(values(less(u, 8)), (V{1, 0}));
  EXPECT_THROW(add(u, 300), ValueError);
}

CATENA_ON_DEVICES(Casts);

}  // namespace
}  // namespace catena
