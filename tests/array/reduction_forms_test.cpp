// The argument forms of reductions: axes in braces, keepdims, where, initial, out, named arguments.
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/devices.h"
#include "catena/array/fusion.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/sorting.h"
#include "catena/array/statistics.h"

namespace catena {
namespace {

using namespace test;

class ReductionForms : public OnDevice {};

// A number is no bool: {0, 1} cannot mean axis 0 with keepdims.
static_assert(!std::is_constructible_v<YesNo, int>);
static_assert(std::is_constructible_v<YesNo, bool>);
static_assert(!std::is_constructible_v<ReduceAxes, Axes, int>);
static_assert(std::is_constructible_v<ReduceAxes, int, bool>);
static_assert(!std::is_convertible_v<bool, ReduceAxes>);
static_assert(!std::is_convertible_v<bool, AxisList>);
static_assert(!std::is_constructible_v<AxisList, int, bool>);
// Options are given by name: nothing converts to them.
static_assert(std::is_aggregate_v<ReduceOptions>);
static_assert(!std::is_convertible_v<int, ReduceOptions>);
static_assert(!std::is_convertible_v<Axes, ReduceOptions>);

TEST_P(ReductionForms, NumbersInBracesAreAxes) {
  const Array a = counting({2, 3, 4});
  EXPECT_EQ(sum(a, {0, 1}).shape(), Shape{4});
  EXPECT_EQ(values(sum(a, {0, 1})), (V{60, 66, 72, 78}));
  EXPECT_EQ(a.sum({0, 1}).shape(), Shape{4});
  EXPECT_EQ(sum(a, {-1, 0}).shape(), Shape{3});
  EXPECT_EQ(sum(a, {0, 1, 2}).shape(), Shape{});
  EXPECT_EQ(a.max({1, 0}).shape(), Shape{4});
  EXPECT_EQ(median(a, {0, 1}).shape(), Shape{4});
  EXPECT_EQ(percentile(a, 50, {0, 1}).shape(), Shape{4});
  EXPECT_EQ(nansum(a, {0, 2}).shape(), Shape{3});
  EXPECT_EQ(var(a, {0, 1}, 1).shape(), Shape{4});
  const int axis = 1;
  const int64_t other = 2;
  EXPECT_EQ(sum(a, {axis, other}).shape(), Shape{2});
}

TEST_P(ReductionForms, KeepdimsIsABool) {
  const Array a = counting({2, 3, 4});
  const bool keep = true;
  EXPECT_EQ(sum(a, {0, true}).shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(sum(a, {1, keep}).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(sum(a, {0, false}).shape(), (Shape{3, 4}));
  EXPECT_EQ(sum(a, {{0, 2}, true}).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(sum(a, {{1}, true}).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(argmax(a, 1, true).shape(), (Shape{2, 1, 4}));
}

TEST_P(ReductionForms, NoAxesAreAllAxes) {
  const Array a = counting({2, 3});
  EXPECT_EQ(sum(a, {{}, true}).shape(), (Shape{1, 1}));
  EXPECT_EQ(sum(a, {none, true}).shape(), (Shape{1, 1}));
  EXPECT_EQ(sum(a, none).item<double>(), 15);
  EXPECT_EQ(sum(a, {}).item<double>(), 15);
  EXPECT_EQ(sum(a, {0}).shape(), Shape{3});
  EXPECT_EQ(sum(a, std::optional<int64_t>()).shape(), Shape{});
  EXPECT_EQ(a.sum({}).shape(), Shape{});
}

// A Shape, a vector and an axis that may be left out name axes too, in every function that takes
// them.
TEST_P(ReductionForms, AxesInVariables) {
  const Array a = counting({2, 1, 3});
  const Axes axes{0, 2};
  const std::vector<int> list{0, 2};
  const std::optional<int64_t> one = 2;
  EXPECT_EQ(sum(a, axes).shape(), Shape{1});
  EXPECT_EQ(sum(a, list, true).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(sum(a, {axes, true}).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(sum(a, one).shape(), (Shape{2, 1}));
  EXPECT_EQ(sum(a, {.axes = axes}).shape(), Shape{1});
  EXPECT_EQ(argmax(a, one, true).shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(a.squeeze(1).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(a, {1}).shape(), (Shape{2, 3}));
  EXPECT_EQ(values(flip(a, {0, 2})), (V{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(values(flip(a, list)), (V{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(linalg::norm(a, {}, {0, 2}, true).shape(), (Shape{1, 1, 1}));
}

TEST_P(ReductionForms, ArgumentsByName) {
  const Array a = counting({2, 3, 4}), out = zeros({1, 1, 4}, {Dtype::kFloat32, GetParam()});
  const Array result = sum(a, {.axes = {0, 1}, .keepdims = true, .out = out});
  EXPECT_TRUE(result.same_body(out));
  EXPECT_EQ(values(out), (V{60, 66, 72, 78}));
  EXPECT_EQ(mean(a, {.dtype = Dtype::kFloat32}).dtype(), Dtype::kFloat32);
  EXPECT_EQ(amax(a, {.where = a < 5, .initial = -1}).item<double>(), 4);
  EXPECT_EQ(var(counting({4}), {.axes = {0}}, 1).item<double>(), 5.0 / 3);
  EXPECT_EQ(a.sum({.axes = 1, .dtype = Dtype::kFloat32}).dtype(), Dtype::kFloat32);
  EXPECT_TRUE(a.max({.axes = {0, 1}, .keepdims = true, .out = out}).same_body(out));
  EXPECT_EQ(median(a, {.axes = none, .keepdims = true}).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(quantile(a, {0.5}, {.axes = 0, .keepdims = true}).shape(), (Shape{1, 1, 3, 4}));
  EXPECT_EQ(average(a, a + 1, {.axes = 2}).shape(), (Shape{2, 3}));
  EXPECT_EQ(nansum(a, {.axes = 2}).shape(), (Shape{2, 3}));
}

// A result of its own is no view, whatever its shape.
TEST_P(ReductionForms, ResultsOwnTheirElements) {
  const Array a = counting({2, 3, 4});
  for (const bool keepdims : {false, true}) {
    for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, 2}}) {
      const Array y = sum(a, axes, keepdims);
      EXPECT_TRUE(y.flags().owndata);
      EXPECT_TRUE(y.is_contiguous());
      EXPECT_EQ(values(y.ravel()), values(y));
      EXPECT_EQ(y.strides(), contiguous_strides(y.shape(), y.itemsize()));
    }
  }
}

TEST_P(ReductionForms, KeepdimsAndDdofAfterTheAxes) {
  const Array a = numbers({1, 2, 3, 4, 5, 9}).reshape({2, 3});
  EXPECT_EQ(sum(a, 1, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(median(a, {0, 1}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(values(var(a, 1, 1)), (V{1, 7}));
  EXPECT_EQ(values(var(a, 1, true, 1)), (V{1, 7}));
  EXPECT_EQ(var(a, 1, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(values(a.std(1, 1))[0], 1);
  EXPECT_EQ(values(nanvar(a, {1, true}, 1)), (V{1, 7}));
}

TEST_P(ReductionForms, WhereLeavesElementsOut) {
  const Array a = numbers({1, 2, 3, 4, 5, 6}).reshape({2, 3});
  const Array mask = on(array({true, false, true, false, false, true})).reshape({2, 3});
  EXPECT_EQ(values(sum(a, {.axes = {1}, .where = mask})), (V{4, 6}));
  EXPECT_EQ(values(prod(a, {.axes = {0}, .where = mask})), (V{1, 1, 18}));
  EXPECT_EQ(values(mean(a, {.axes = {1}, .where = mask})), (V{2, 6}));
  EXPECT_EQ(values(var(a, {.axes = {1}, .where = mask})), (V{1, 0}));
  EXPECT_EQ(values(std(a, {.axes = {1}, .keepdims = true, .where = mask})), (V{1, 0}));
  EXPECT_EQ(values(amax(a, {.axes = {0}, .where = mask, .initial = 0})), (V{1, 0, 6}));
  EXPECT_EQ(values(amin(a, {.axes = {0}, .where = mask, .initial = 5})), (V{1, 5, 3}));
  EXPECT_EQ(values(all(a > 2, {.axes = {1}, .where = mask})), (V{0, 1}));
  EXPECT_EQ(values(any(a > 3, {.axes = {1}, .where = mask})), (V{0, 1}));
  EXPECT_EQ(values(count_nonzero(a, {.axes = {0}, .where = mask})), (V{1, 0, 2}));
  EXPECT_TRUE(std::isnan(mean(a, {.axes = {0}, .where = mask})(1).item<double>()));
}

TEST_P(ReductionForms, WhereBroadcastsAndKeepsDtypes) {
  const Array a = counting({2, 3}, Dtype::kUInt8);
  const Array columns = on(array({true, false, true}));
  EXPECT_EQ(values(sum(a, {.axes = {1}, .where = columns})), (V{2, 8}));
  EXPECT_EQ(sum(a, {.where = columns}).dtype(), Dtype::kUInt64);
  EXPECT_EQ(amax(a, {.where = columns, .initial = 1}).dtype(), Dtype::kUInt8);
  EXPECT_EQ(mean(a, {.where = columns}).dtype(), Dtype::kFloat64);
  const Array half = a.astype(Dtype::kFloat16);
  EXPECT_EQ(var(half, {.where = columns}).dtype(), Dtype::kFloat16);
  EXPECT_EQ(var(half, {.where = columns}).item<double>(), 3.25);  // of 0, 2, 3, 5
  // NaN that the mask leaves out leaves no trace, also in a strided view.
  const Array holes = numbers({1, NAN, 3, NAN, 5, NAN}).reshape({3, 2});
  EXPECT_EQ(mean(holes, {.where = logical_not(isnan(holes))}).item<double>(), 3);
  EXPECT_EQ(sum(holes.T(), {.where = isfinite(holes.T())}).item<double>(), 9);
}

TEST_P(ReductionForms, InitialIsOneMoreElement) {
  const Array a = ints({3, 4});
  EXPECT_EQ(sum(a, {.initial = 10}).item<int64_t>(), 17);
  EXPECT_EQ(prod(a, {.initial = 10}).item<int64_t>(), 120);
  EXPECT_EQ(amax(a, {.initial = 9}).item<int64_t>(), 9);
  EXPECT_EQ(amin(a, {.initial = 9}).item<int64_t>(), 3);
  const Array nothing = zeros({0, 2}, {GetParam()});
  EXPECT_EQ(values(amax(nothing, {.axes = {0}, .initial = -1})), (V{-1, -1}));
  EXPECT_EQ(values(sum(nothing, {.axes = {0}, .initial = 2})), (V{2, 2}));
  EXPECT_EQ(sum(on(scalar_array(5.0)), {.initial = 1}).item<double>(), 6);
  const Array nan = numbers({NAN, NAN});
  EXPECT_EQ(nanmax(nan, {.initial = 2}).item<double>(), 2);
}

TEST_P(ReductionForms, MistakesAreNamed) {
  const Array a = counting({2, 3}), mask = a > 1;
  expect_contains(error_of<ValueError>([&] { amax(a, {.where = mask}); }), {"amax", "initial"});
  expect_contains(error_of<DtypeError>([&] { sum(a, {.where = a}); }), {"sum", "bool", "float64"});
  expect_contains(error_of<ShapeError>([&] { sum(a[0], {.where = mask}); }),
                  {"sum", "(2, 3)", "(3,)"});
  expect_contains(error_of<ValueError>([&] { mean(a, {.initial = 1}); }), {"mean", "initial"});
  expect_contains(error_of<ValueError>([&] { all(a, {.initial = 1}); }), {"all", "initial"});
  expect_contains(error_of<ValueError>([&] { ptp(a, {.where = mask}); }), {"ptp", "where"});
  const ReduceOptions masked{.where = mask};
  expect_contains(error_of<ValueError>([&] { argmax(a, masked); }), {"argmax", "where"});
  expect_contains(error_of<ValueError>([&] { argmin(a, {0, 1}); }), {"argmin", "one axis", "2"});
  expect_contains(error_of<ValueError>([&] { median(a, masked); }), {"median", "where"});
  expect_contains(error_of<ValueError>([&] { average(a, a, masked); }), {"average", "where"});
  const auto fused = fuse([&](Fused x) { return sum(x * 2, masked); });
  expect_contains(error_of<ValueError>([&] { fused(a); }), {"sum", "where"});
}

TEST_P(ReductionForms, OutOfPositionsAndCounts) {
  const Array a = numbers({3, 1, 2, 0, 5, 4}).reshape({2, 3}), out = zeros({2}, {GetParam()});
  argmax(a, {.axes = 1, .out = out});
  EXPECT_EQ(values(out), (V{0, 1}));
  argmin(a, {.axes = 1, .out = out});
  EXPECT_EQ(values(out), (V{1, 0}));
  expect_contains(error_of<ShapeError>([&] { argmin(a, {.axes = 0, .out = out}); }),
                  {"argmin", "(2,)"});
  EXPECT_EQ(values(count_nonzero(a, 0)), (V{1, 2, 2}));
  EXPECT_EQ(count_nonzero(a, {1, true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(count_nonzero(a), 5);
}

// Rows of each length around the vectors' one, with infinities and a NaN in every seventh row.
TEST_P(ReductionForms, ExtremesOfShortRows) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64})
    for (int64_t n = 1; n <= 18; ++n) {
      V x, largest, smallest;
      for (int64_t row = 0; row < 75; ++row) {
        for (int64_t k = 0; k < n; ++k) x.push_back(double((row * 5 + k * 7) % 23) - 11);
        if (row % 7 == 1) x[size_t(row * n + row % n)] = std::nan("");
        if (row % 7 == 2) x[size_t(row * n + row % n)] = inf;
        if (row % 7 == 3) x[size_t(row * n + row % n)] = -inf;
        const auto [low, high] = std::minmax_element(x.begin() + row * n, x.end());
        largest.push_back(row % 7 == 1 ? std::nan("") : *high);
        smallest.push_back(row % 7 == 1 ? std::nan("") : *low);
      }
      const Array a = numbers(x).astype(dtype).reshape({75, n});
      const auto expect = [&](const Array& y, const V& reference) {
        EXPECT_EQ(y.dtype(), dtype);
        EXPECT_EQ(testing::difference(y.astype(Dtype::kFloat64), numbers(reference)), "")
            << dtype << " rows of " << n;
      };
      expect(amax(a, 1), largest);
      expect(amin(a, 1), smallest);
    }
}

CATENA_ON_DEVICES(ReductionForms);

class MaskedElementwise : public OnDevice {};

TEST_P(MaskedElementwise, KeepsWhatOutHolds) {
  const Array a = numbers({1, 2, 3}), b = numbers({10, 20, 30});
  const Array out = numbers({-1, -1, -1}), mask = on(array({true, false, true}));
  EXPECT_TRUE(add(a, b, {out, mask}).same_body(out));
  EXPECT_EQ(values(out), (V{11, -1, 33}));
  sqrt(a * a, {out, logical_not(mask)});
  EXPECT_EQ(values(out), (V{11, 2, 33}));
  multiply(a, 2, {a, mask});  // in place
  EXPECT_EQ(values(a), (V{2, 2, 6}));
}

TEST_P(MaskedElementwise, BroadcastsMaskAndOperands) {
  const Array out = zeros({2, 3}, {Dtype::kFloat32, GetParam()});
  add(numbers({1, 2, 3}), 1, {out, on(array({true, false})).reshape({2, 1})});
  EXPECT_EQ(values(out), (V{2, 3, 4, 0, 0, 0}));
  const Array columns = zeros({3, 2}, {GetParam()});
  negative(counting({2, 3}), {columns.T(), on(array({false, true, true}))});
  EXPECT_EQ(values(columns), (V{0, 0, -1, -4, -2, -5}));
  const Array nothing = zeros({0, 3}, {GetParam()});
  add(nothing, 1, {nothing, on(array({true, false, true}))});
  EXPECT_EQ(nothing.shape(), (Shape{0, 3}));
}

TEST_P(MaskedElementwise, MistakesAreNamed) {
  const Array a = numbers({1, 2}), mask = on(array({true, false}));
  Out alone;
  alone.where = &mask;
  expect_contains(error_of<ValueError>([&] { add(a, a, alone); }), {"add", "where", "output"});
  expect_contains(error_of<DtypeError>([&] { add(a, a, {a, a}); }), {"add", "bool"});
  const Array small = zeros({2}, {Dtype::kInt32, GetParam()});
  expect_contains(error_of<DtypeError>([&] { add(a, a, {small, mask}); }), {"add", "int32"});
  const Array wide = on(array({true, false, true, true})).reshape({2, 2});
  expect_contains(error_of<ShapeError>([&] { add(a, a, {a, wide}); }), {"add", "(2, 2)"});
  const Array matrix = zeros({2, 2}, {GetParam()});
  expect_contains(error_of<ValueError>([&] {
                    matmul(matrix, matrix, {matrix, wide});
                  }),
                  {"matmul", "where"});
}

CATENA_ON_DEVICES(MaskedElementwise);

}  // namespace
}  // namespace catena
