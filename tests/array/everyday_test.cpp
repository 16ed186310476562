// Positions along axes, sets, element-wise numerics, calculus and statistics: numbers from NumPy.
#include <cmath>

#include "array/devices.h"
#include "catena/array/along_axis.h"
#include "catena/array/calculus.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/numeric.h"
#include "catena/array/sets.h"
#include "catena/array/statistics.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;
using ::error_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Everyday : public OnDevice {
 protected:
  // Equal numbers within rounding, NaN where NaN is expected.
  void expect_close(const Array& got, const V& expected) {
    EXPECT_TRUE(allclose(got.ravel().to(cpu()), array(expected, cpu()), 1e-12, 1e-14, true)) << got;
  }
};

TEST_P(Everyday, TakeAndPutAlongAnAxis) {
  const Array a = numbers({3, 1, 2, 4, 6, 5}).reshape({2, 3}), order = argsort(a, 1);
  EXPECT_EQ(values(take_along_axis(a, order, 1)), (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values(take_along_axis(a.T(), order.T(), 0)), (V{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values(take_along_axis(a, argmax(a, 1, true), 1)), (V{3, 6}));
  EXPECT_EQ(values(take_along_axis(a, ints({-1, 0}), none)), (V{5, 3}));
  EXPECT_EQ(values(take_along_axis(a, ints({1}).reshape({1, 1}), 1)), (V{1, 6}));
  EXPECT_EQ(
      take_along_axis(zeros({0, 3}, {GetParam()}), zeros({0, 2}, {Dtype::kInt64, GetParam()}), 1)
          .shape(),
      (Shape{0, 2}));
  put_along_axis(a, argmin(a, 1, true), 0, 1);
  EXPECT_EQ(values(a), (V{3, 0, 2, 0, 6, 5}));
  put_along_axis(a.T(), ints({0, 1}).reshape({1, 2}), numbers({7, 8}), 0);
  EXPECT_EQ(values(a), (V{7, 0, 2, 0, 8, 5}));
  put_along_axis(a.T(), ints({5}), 1, none);
  EXPECT_EQ(values(a), (V{7, 0, 2, 0, 8, 1}));
  expect_contains(error_of<ShapeError>([&] { take_along_axis(a, ints({0}), 1); }),
                  {"take_along_axis", "(1,)", "(2, 3)"});
  expect_contains(error_of<DtypeError>([&] { take_along_axis(a, a, 1); }), {"take_along_axis"});
  EXPECT_THROW(take_along_axis(a, ints({3}).reshape({1, 1}), 1), IndexError);
}

TEST_P(Everyday, WritingByMasks) {
  const Array a = counting({5}), mask = a > 1;
  putmask(a, mask, numbers({10, 20}));  // repeated over all elements
  EXPECT_EQ(values(a), (V{0, 1, 10, 20, 10}));
  place(a, mask, numbers({7, 8}));  // one after the other
  EXPECT_EQ(values(a), (V{0, 1, 7, 8, 7}));
  putmask(a, mask, -1);
  EXPECT_EQ(values(a), (V{0, 1, -1, -1, -1}));
  EXPECT_THROW(putmask(a, ones({4}, {Dtype::kBool, GetParam()}), 1), ShapeError);
  EXPECT_THROW(place(a, mask, zeros({0}, {GetParam()})), ValueError);
}

TEST_P(Everyday, Diagonals) {
  const Array a = zeros({3, 3}, {GetParam()});
  fill_diagonal(a.T(), numbers({1, 2}));
  EXPECT_EQ(values(a), (V{1, 0, 0, 0, 2, 0, 0, 0, 1}));
  const Array tall = zeros({5, 2}, {Dtype::kInt8, GetParam()});
  fill_diagonal(tall, 4);
  EXPECT_EQ(values(tall), (V{4, 0, 0, 4, 0, 0, 0, 0, 0, 0}));
  fill_diagonal(tall, 5, true);
  EXPECT_EQ(values(tall), (V{5, 0, 0, 5, 0, 0, 5, 0, 0, 5}));
  const Array cube = zeros({2, 2, 2}, {GetParam()});
  fill_diagonal(cube, 1);
  EXPECT_EQ(values(cube), (V{1, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_THROW(fill_diagonal(zeros({2, 3, 2}, {GetParam()}), 1), ShapeError);
  EXPECT_THROW(fill_diagonal(zeros({2}, {GetParam()}), 1), ShapeError);
}

TEST_P(Everyday, PositionsOfTrianglesAndGrids) {
  const Device device = GetParam();
  const auto low = tril_indices(3, -1, {}, device), high = triu_indices(2, 0, 3, device);
  EXPECT_EQ(values(low[0]), (V{1, 2, 2}));
  EXPECT_EQ(values(low[1]), (V{0, 0, 1}));
  EXPECT_EQ(values(high[0]), (V{0, 0, 0, 1, 1}));
  EXPECT_EQ(values(high[1]), (V{0, 1, 2, 1, 2}));
  EXPECT_EQ(diag_indices(4, 3, device).size(), 3u);
  EXPECT_EQ(values(diag_indices(2, 2, device)[1]), (V{0, 1}));
  const Array grid = indices({2, 3}, device);
  EXPECT_EQ(grid.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(values(grid), (V{0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}));
  const auto mesh = ix_({ints({2, 0}), on(array({true, false, true}))});
  const Array a = counting({3, 3});
  EXPECT_EQ(values(a(mesh[0], mesh[1])), (V{6, 8, 0, 2}));
  EXPECT_THROW(ix_({a}), ShapeError);
}

TEST_P(Everyday, Select) {
  const Array a = counting({5});
  EXPECT_EQ(values(select({a < 2, a < 4}, {a, a * 10})), (V{0, 1, 20, 30, 0}));
  EXPECT_EQ(values(select({a < 1}, {a}, numbers({-1}))), (V{0, -1, -1, -1, -1}));
  EXPECT_EQ(select({a < 1}, {a.astype(Dtype::kInt8)}, 0).dtype(), Dtype::kInt8);
  EXPECT_EQ(select({a < 1}, {a.astype(Dtype::kInt8)}, 0.5).dtype(), Dtype::kFloat64);
  EXPECT_THROW(select({a < 1}, {a, a}), ValueError);
  EXPECT_THROW(select({a}, {a}), DtypeError);
}

TEST_P(Everyday, Sets) {
  const Array a = ints({3, 1, 2, 3}), b = ints({3, 5, 1});
  EXPECT_EQ(values(isin(a.reshape({2, 2}), b)), (V{1, 1, 0, 1}));
  EXPECT_EQ(values(isin(a, b, true)), (V{0, 0, 1, 0}));
  EXPECT_EQ(values(intersect1d(a, b)), (V{1, 3}));
  EXPECT_EQ(values(union1d(a, b)), (V{1, 2, 3, 5}));
  EXPECT_EQ(values(setdiff1d(a, b)), (V{2}));
  EXPECT_EQ(values(setxor1d(a, b)), (V{2, 5}));
  const Array nothing = ints({});
  EXPECT_EQ(values(isin(a, nothing, true)), (V{1, 1, 1, 1}));
  EXPECT_EQ(intersect1d(a, nothing).size(), 0);
  EXPECT_EQ(values(setxor1d(nothing, b)), (V{1, 3, 5}));
  EXPECT_EQ(values(isin(numbers({NAN, 1, 2.5}), numbers({NAN, 1}))), (V{0, 1, 0}));
  EXPECT_EQ(union1d(a, numbers({0.5})).dtype(), Dtype::kFloat64);
}

TEST_P(Everyday, RoundingAndReplacing) {
  EXPECT_EQ(values(round(numbers({0.5, 1.5, -2.5}))), (V{0, 2, -2}));
  expect_close(round(numbers({1.25, 3.14159}), 1), {1.2, 3.1});
  EXPECT_EQ(values(around(numbers({1250, 1350}), -2)), (V{1200, 1400}));
  EXPECT_EQ(values(round(ints({15, 25, 149}), -1)), (V{20, 20, 150}));
  EXPECT_EQ(round(ints({15}), -1).dtype(), Dtype::kInt64);
  EXPECT_EQ(values(round(ints({15}), 2)), (V{15}));
  const Array out = zeros({1}, {Dtype::kFloat32, GetParam()});
  round(numbers({1.26}), 1, out);
  EXPECT_EQ(out.to_vector<float>()[0], 1.3f);
  const Array holes = numbers({NAN, INFINITY, -INFINITY, 2});
  EXPECT_EQ(values(nan_to_num(holes, 1, 5, -5)), (V{1, 5, -5, 2}));
  EXPECT_EQ(values(nan_to_num(holes.astype(Dtype::kFloat16))), (V{0, 65504, -65504, 2}));
  EXPECT_EQ(values(nan_to_num(ints({3}))), (V{3}));
  expect_close(heaviside(numbers({-1, 0, 2, NAN}), 0.5), {0, 0.5, 1, kNan});
  EXPECT_EQ(heaviside(numbers({1}).astype(Dtype::kFloat32), 1).dtype(), Dtype::kFloat32);
}

TEST_P(Everyday, Divisors) {
  EXPECT_EQ(values(gcd(ints({12, -18, 0, 7}), 6)), (V{6, 6, 6, 1}));
  EXPECT_EQ(values(gcd(ints({0, 5}), 0)), (V{0, 5}));
  EXPECT_EQ(values(lcm(ints({4, 6, 0, -3}), ints({6, 4, 0, 5}))), (V{12, 12, 0, 15}));
  EXPECT_EQ(values(lcm(ints({4, 6}).reshape({2, 1}), ints({3, 8}))), (V{12, 8, 6, 24}));
  const Array fibonacci = ints({7540113804746346429}), before = ints({4660046610375530309});
  EXPECT_EQ(gcd(fibonacci, before).item<int64_t>(), 1);  // Euclid's longest way
  EXPECT_EQ(gcd(ints({12}).astype(Dtype::kUInt8), 8).dtype(), Dtype::kUInt8);
  expect_contains(error_of<DtypeError>([&] { gcd(numbers({1}), 2); }), {"gcd", "float64"});
}

TEST_P(Everyday, Interpolation) {
  const Array xp = numbers({0, 1, 3}), fp = numbers({10, 20, 0});
  EXPECT_EQ(values(interp(numbers({-1, 0, 0.5, 1, 2, 3, 4}), xp, fp)),
            (V{10, 10, 15, 20, 10, 0, 0}));
  EXPECT_EQ(values(interp(numbers({-1, 4}), xp, fp, -5, 5)), (V{-5, 5}));
  EXPECT_EQ(interp(2, xp, fp).item<double>(), 10);
  EXPECT_EQ(interp(numbers({1, 2, 0}), numbers({1}), numbers({4}), 0, 9).to_vector<double>(),
            (V{4, 9, 0}));
  EXPECT_TRUE(std::isnan(interp(kNan, xp, fp).item<double>()));
  EXPECT_EQ(interp(ints({2}).reshape({1, 1}), xp, fp).shape(), (Shape{1, 1}));
  expect_contains(error_of<ShapeError>([&] { interp(1, xp, numbers({1})); }), {"interp", "3", "1"});
  EXPECT_THROW(interp(1, numbers({}), numbers({})), ValueError);
}

TEST_P(Everyday, DerivativesAndIntegrals) {
  const Array f = numbers({1, 2, 4, 7, 11, 16});
  EXPECT_EQ(values(gradient(f)[0]), (V{1, 1.5, 2.5, 3.5, 4.5, 5}));
  EXPECT_EQ(values(gradient(f, 2, 0)), (V{0.5, 0.75, 1.25, 1.75, 2.25, 2.5}));
  expect_close(gradient(f, numbers({0, 1, 1.5, 3.5, 4, 6}), 0), {1, 3, 3.5, 6.7, 6.9, 2.5});
  const Array m = counting({2, 3}, Dtype::kInt32);
  const auto both = gradient(m);
  EXPECT_EQ(values(both[0]), (V{3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(values(both[1]), (V{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(gradient(f.astype(Dtype::kFloat32))[0].dtype(), Dtype::kFloat32);
  EXPECT_THROW(gradient(f(Slice(0, 1))), ValueError);
  EXPECT_THROW(gradient(f, m.ravel()(Slice(0, 5)), 0), ShapeError);
  EXPECT_EQ(trapezoid(ints({1, 2, 3})).item<double>(), 4);
  EXPECT_EQ(trapz(ints({1, 2, 3}), 2).item<double>(), 8);
  EXPECT_EQ(trapezoid(ints({1, 2, 3}), ints({4, 6, 8})).item<double>(), 8);
  EXPECT_EQ(values(trapezoid(m, 1, 0)), (V{1.5, 2.5, 3.5}));
  EXPECT_EQ(values(trapezoid(m, numbers({0, 2}), 0)), (V{3, 5, 7}));
  EXPECT_EQ(trapezoid(zeros({0}, {GetParam()})).item<double>(), 0);
}

TEST_P(Everyday, Convolution) {
  const Array a = numbers({1, 2, 3}), v = numbers({0, 1, 0.5});
  EXPECT_EQ(values(convolve(a, v)), (V{0, 1, 2.5, 4, 1.5}));
  EXPECT_EQ(values(convolve(a, v, Overlap::kSame)), (V{1, 2.5, 4}));
  EXPECT_EQ(values(convolve(a, v, Overlap::kValid)), (V{2.5}));
  EXPECT_EQ(values(correlate(a, v)), (V{3.5}));
  EXPECT_EQ(values(correlate(a, v, Overlap::kFull)), (V{0.5, 2, 3.5, 3, 0}));
  const Array two = ints({1, 10});
  EXPECT_EQ(values(correlate(ints({1, 2, 3, 4}), two, Overlap::kSame)), (V{10, 21, 32, 43}));
  EXPECT_EQ(values(correlate(two, ints({1, 2, 3, 4}), Overlap::kSame)), (V{43, 32, 21, 10}));
  EXPECT_EQ(convolve(two, two).dtype(), Dtype::kInt64);
  EXPECT_EQ(values(convolve(counting({6})(Slice(none, none, 2)), numbers({1}))), (V{0, 2, 4}));
  EXPECT_THROW(convolve(a, numbers({})), ValueError);
  EXPECT_THROW(convolve(a.reshape({1, 3}), v), ShapeError);
}

TEST_P(Everyday, ConvolutionInBlocks) {
  const Array a = arange(5000, GetParam()) % 7, v = arange(2000, GetParam()) % 5;
  const Array result = convolve(a, v);
  const auto x = a.to_vector<int64_t>(), y = v.to_vector<int64_t>(),
             z = result.to_vector<int64_t>();
  ASSERT_EQ(z.size(), 6999u);
  for (const size_t k : {0ul, 1999ul, 2097ul, 2098ul, 4500ul, 6998ul}) {
    int64_t expected = 0;
    for (size_t j = 0; j < y.size(); ++j) {
      if (k >= j && k - j < x.size()) expected += x[k - j] * y[j];
    }
    EXPECT_EQ(z[k], expected) << k;
  }
}

TEST_P(Everyday, CrossProducts) {
  const Array x = ints({1, 2, 3}), y = ints({4, 5, 6});
  EXPECT_EQ(values(cross(x, y)), (V{-3, 6, -3}));
  const Array rows = stack({x, y});
  EXPECT_EQ(values(cross(rows, y)), (V{-3, 6, -3, 0, 0, 0}));
  EXPECT_EQ(values(cross(rows.T(), stack({y, x}).T(), 0)), (V{-3, 3, 6, -6, -3, 3}));
  EXPECT_EQ(values(cross(ints({1, 2}), ints({3, 4}))), (V{-2}));
  EXPECT_EQ(cross(ints({1, 2}), ints({3, 4})).ndim(), 0);
  expect_contains(error_of<ShapeError>([&] { cross(x, ints({1, 2})); }), {"cross", "(3,)", "(2,)"});
}

TEST_P(Everyday, StatisticsWithoutNan) {
  const Array a = numbers({1, NAN, 3, 4, NAN, NAN, NAN, NAN}).reshape({2, 4});
  expect_close(nanvar(a, 1), {14.0 / 9, kNan});
  expect_close(nanstd(a, {1, true}, 1), {std::sqrt(14.0 / 6), kNan});
  expect_close(nanvar(a, 0, 1), {kNan, kNan, kNan, kNan});
  expect_close(nanmedian(a, 1), {3, kNan});
  expect_close(nanmedian(a), {3});
  expect_close(nanmedian(numbers({4, NAN, 1})), {2.5});
  expect_close(nanpercentile(a, 25, 1), {2, kNan});
  expect_close(nanquantile(a, {0, 1}, {1, true}), {1, kNan, 4, kNan});
  expect_close(nanquantile(a, 0.6, 1, QuantileMethod::kLower), {3, kNan});
  EXPECT_EQ(nanmedian(ints({1, 2})).item<double>(), 1.5);
  expect_close(nanmedian(zeros({2, 0}, {GetParam()}), 1), {kNan, kNan});
  expect_close(nancumsum(a[0]), {1, 1, 4, 8});
  expect_close(nancumprod(a[0]), {1, 1, 3, 12});
  EXPECT_EQ(nanargmax(a[0]).item<int64_t>(), 3);
  EXPECT_EQ(values(nanargmin(numbers({NAN, 2, 1, NAN}).reshape({2, 2}), 1)), (V{1, 0}));
  EXPECT_EQ(nanargmax(ints({1, 3, 2})).item<int64_t>(), 1);
  expect_contains(error_of<ValueError>([&] { nanargmax(a, 1); }), {"nanargmax", "NaN"});
  const Array mask = on(array({true, true, false, true}));
  expect_close(nanvar(a[0], {.where = mask}), {2.25});
}

TEST_P(Everyday, Covariances) {
  const Array x = numbers({0, 1, 2, 2, 1, 0}).reshape({2, 3});
  EXPECT_EQ(values(cov(x)), (V{1, -1, -1, 1}));
  expect_close(cov(x, {.bias = true}), {2.0 / 3, -2.0 / 3, -2.0 / 3, 2.0 / 3});
  expect_close(cov(x, {.rowvar = false, .ddof = 0}), {1, 0, -1, 0, 0, 0, -1, 0, 1});
  EXPECT_EQ(cov(x[0]).ndim(), 0);
  EXPECT_EQ(cov(x[0]).item<double>(), 1);
  EXPECT_EQ(values(cov(x[0], x[1])), (V{1, -1, -1, 1}));
  expect_close(corrcoef(x), {1, -1, -1, 1});
  expect_close(corrcoef(x[0], x[0]), {1, 1, 1, 1});
  EXPECT_EQ(corrcoef(x[0]).item<double>(), 1);
  EXPECT_EQ(cov(x.astype(Dtype::kFloat32)).dtype(), Dtype::kFloat64);
  EXPECT_THROW(cov(zeros({2, 2, 2}, {GetParam()})), ShapeError);
  expect_contains(error_of<ShapeError>([&] { cov(x[0], numbers({1, 2})); }), {"cov", "3", "2"});
}

TEST_P(Everyday, HistogramsOnGrids) {
  const Array x = numbers({0, 0.5, 1, 2, 9}), y = numbers({0, 1, 1, 2, 0});
  const Array ex = numbers({0, 1, 2}), ey = numbers({0, 1, 2});
  EXPECT_EQ(values(histogram2d(x, y, ex, ey).counts), (V{1, 1, 0, 2}));
  EXPECT_EQ(values(histogram2d(x, y, ex, ey, {.weights = numbers({1, 2, 3, 4, 5})}).counts),
            (V{1, 2, 0, 7}));
  EXPECT_EQ(values(histogram2d(x, y, ex, ey, {.density = true}).counts), (V{0.25, 0.25, 0, 0.5}));
  const Histogram2d even = histogram2d(x, y, 3);
  EXPECT_EQ(values(even.x_edges), (V{0, 3, 6, 9}));
  EXPECT_EQ(sum(even.counts).item<double>(), 5);
  EXPECT_EQ(histogramdd(zeros({0, 2}, {GetParam()}), {ex, ey}).shape(), (Shape{2, 2}));
  EXPECT_THROW(histogramdd(x, {ex}), ShapeError);
}

TEST_P(Everyday, PiecesByConditions) {
  const Array x = numbers({-2, -1, 0, 1, 2});
  EXPECT_EQ(values(piecewise(x, {x < 0, x >= 0}, {-1, 1})), (V{-1, -1, 1, 1, 1}));
  const auto negated = [](const Array& part) { return -part; };
  EXPECT_EQ(values(piecewise(x, {x < 0}, {negated, 7})), (V{2, 1, 7, 7, 7}));
  // The last true condition counts; elements without one are 0.
  EXPECT_EQ(values(piecewise(x, {x > -2, x > 1}, {1, negated})), (V{0, 1, 1, 1, -2}));
  const auto never = [](const Array&) -> Array { throw ValueError("was called"); };
  EXPECT_EQ(values(piecewise(x, {x > 9, x < 9}, {never, 3})), V(5, 3));
  EXPECT_EQ(piecewise(ints({1, 2}), {ints({1, 2}) > 1}, {2.9}).dtype(), Dtype::kInt64);
  EXPECT_EQ(values(piecewise(x, {on(array({true}))}, {4})), V(5, 4));
  expect_contains(error_of<ValueError>([&] {
                    piecewise(x, {x < 0}, {1, 2, 3});
                  }),
                  {"piecewise: 3"});
  expect_contains(error_of<ShapeError>([&] {
                    piecewise(x, {numbers({1, 2}) > 0}, {1});
                  }),
                  {"piecewise: "});
  expect_contains(error_of<DtypeError>([&] { piecewise(x, {x}, {1}); }), {"piecewise: ", "bool"});
  expect_contains(error_of<ShapeError>([&] {
                    piecewise(x, {x < 0}, {[&](const Array&) { return numbers({1, 2, 3}); }});
                  }),
                  {"piecewise: ", "(3,)", "2 elements"});
}

TEST_P(Everyday, FunctionsOfLines) {
  const Array a = counting({2, 3});
  const auto ends = [](const Array& line) { return take(line, {0, -1}); };
  EXPECT_EQ(values(apply_along_axis(ends, 1, a)), (V{0, 2, 3, 5}));
  EXPECT_EQ(values(apply_along_axis(ends, 0, a)), (V{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(apply_along_axis([](const Array& line) { return sum(line); }, 0, a)),
            (V{3, 5, 7}));
  const auto square_of = [](const Array& line) { return outer(line, line); };
  EXPECT_EQ(apply_along_axis(square_of, 0, counting({2, 5})).shape(), (Shape{2, 2, 5}));
  EXPECT_THROW(apply_along_axis(ends, 2, a), IndexError);
  EXPECT_THROW(apply_along_axis(ends, 1, zeros({0, 3}, {GetParam()})), ValueError);
  EXPECT_EQ(values(trim_zeros(ints({0, 0, 1, 0, 2, 0}))), (V{1, 0, 2}));
  EXPECT_EQ(values(trim_zeros(ints({0, 1, 0}), TrimEnds::kFront)), (V{1, 0}));
  EXPECT_EQ(values(trim_zeros(ints({0, 1, 0}), TrimEnds::kBack)), (V{0, 1}));
  EXPECT_EQ(trim_zeros(ints({0, 0})).size(), 0);
}

TEST_P(Everyday, ElementwiseNumerics) {
  expect_close(float_power(ints({2, 3}), -1), {0.5, 1.0 / 3});
  EXPECT_EQ(values(fix(numbers({-1.5, 1.5}))), (V{-1, 1}));
  expect_close(sinc(numbers({0, 1, 0.5})), {1, std::sin(M_PI) / M_PI, 2 / M_PI});
  EXPECT_EQ(values(isposinf(numbers({INFINITY, -INFINITY, NAN, 1}))), (V{1, 0, 0, 0}));
  EXPECT_EQ(values(isneginf(numbers({INFINITY, -INFINITY, NAN, 1}))), (V{0, 1, 0, 0}));
  EXPECT_EQ(sinc(ints({1})).dtype(), Dtype::kFloat64);
}

CATENA_ON_DEVICES(Everyday);

}  // namespace
}  // namespace catena
