// Statistics without NaN, covariances, averages and histograms: numbers from NumPy.
#include <cmath>
#include <limits>

#include "array/devices.h"
#include "catena/array/casting.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"
#include "catena/array/statistics.h"

namespace catena {
namespace {

using namespace test;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Statistics : public OnDevice {
 protected:
  // Equal numbers within rounding, NaN where NaN is expected.
  void expect_close(const Array& got, const V& expected) {
    EXPECT_TRUE(allclose(got.ravel().to(cpu()), array(expected, cpu()), 1e-12, 1e-14, true)) << got;
  }
};

TEST_P(Statistics, StatisticsWithoutNan) {
  const Array a = numbers({1, NAN, 3, 4, NAN, NAN, NAN, NAN}).reshape({2, 4});
  expect_close(nanquantile(a, {0, 1}, {1, true}), {1, kNan, 4, kNan});
  expect_close(nanquantile(a, 0.6, 1, QuantileMethod::kLower), {3, kNan});
  EXPECT_EQ(nanmedian(ints({1, 2})).item<double>(), 1.5);
  expect_close(nanmedian(zeros({2, 0}, {GetParam()}), 1), {kNan, kNan});
  expect_close(nancumprod(a[0]), {1, 1, 3, 12});
  EXPECT_EQ(nanargmax(ints({1, 3, 2})).item<int64_t>(), 1);
  expect_contains(error_of<ValueError>([&] { nanargmax(a, 1); }), {"nanargmax", "NaN"});
  const Array mask = on(array({true, true, false, true}));
  expect_close(nanvar(a[0], {.where = mask}), {2.25});
}

TEST_P(Statistics, Covariances) {
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

TEST(StatisticsOnCpu, AverageOfIntegersIsFloat64) {
  const Array a = array<int8_t>({1, 2}), weights = array<float>({1, 2});
  EXPECT_EQ(average(a, weights).dtype(), dtype::float64);
  EXPECT_EQ(average(a, weights).item<double>(), 5.0 / 3);
  EXPECT_EQ(average(weights, a).dtype(), dtype::float32);
}

TEST_P(Statistics, HistogramWeightsAndDensity) {
  const Array a = numbers({0, 0.5, 1, 1.5, 4, NAN, -1}), w = numbers({1, 2, 3, 4, 5, 6, 7});
  const auto [sums, edges] = histogram(a(Slice(0, 5)), 4, {}, {.weights = w(Slice(0, 5))});
  EXPECT_EQ(values(sums), (V{3, 7, 0, 5}));
  EXPECT_EQ(values(edges), (V{0, 1, 2, 3, 4}));
  // Outside of the range and NaN count nowhere.
  EXPECT_EQ(values(histogram(a, 2, {{0, 2}}, {.weights = w}).first), (V{3, 7}));
  EXPECT_EQ(values(histogram(a, 2, {{0, 2}}, {.density = true}).first), (V{0.5, 0.5}));
  const Array uneven = numbers({0, 1, 4});
  EXPECT_EQ(values(histogram(a, uneven, {.weights = w, .density = true}).first), (V{0.2, 0.8 / 3}));
  EXPECT_EQ(histogram(a, uneven, {.weights = w.astype(Dtype::kInt32)}).first.dtype(),
            Dtype::kInt32);
  expect_contains(error_of<ShapeError>([&] { histogram(a, uneven, {.weights = uneven}); }),
                  {"histogram", "(3,)", "(7,)"});
}

TEST_P(Statistics, NumbersThatFillTheirDtype) {
  const auto halves = [&](const V& v) { return numbers(v).astype(Dtype::kFloat16); };
  const Array a = halves(V(1000, 100));
  EXPECT_EQ(nanmean(a).item<float>(), 100);
  EXPECT_EQ(average(a, halves(V(1000, 50))).item<float>(), 100);
  EXPECT_EQ(sum(a, {.initial = -60000}).item<float>(), 40000);
  EXPECT_EQ(linalg::norm(halves({100, 0}), 3, 0).item<float>(), 100);
  const auto [counts, edges] = histogram(halves({60000, 30000, -30000, 1000}), 4);
  EXPECT_EQ(values(counts), V(4, 1));
  EXPECT_EQ(values(edges), (V{-30000, -7500, 15000, 37504, 60000}));
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(values(histogram(numbers({-most, 1, most}), 2).first), (V{1, 2}));
  const Array bytes = ints({-128, 127}).astype(Dtype::kInt8);
  EXPECT_EQ(values(histogram(bytes, bytes, {.density = true}).first), V{1 / 255.0});
  EXPECT_EQ(values(histogramdd(bytes.reshape({2, 1}), {bytes}, {.density = true})), V{1 / 255.0});
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64}) {
    const double x = finfo(d).max;
    const Array b = numbers({-x, x, x, x}).astype(d);
    for (const Array& high : {median(b), nanmedian(b), percentile(b, 50), nanpercentile(b, 50)})
      EXPECT_EQ(high.item<double>(), x) << d;
    for (const Array& low : {percentile(b, 0), nanpercentile(b, 0)})
      EXPECT_EQ(low.item<double>(), -x) << d;
    EXPECT_EQ(percentile(b(Slice(0, 2)), 50).item<double>(), 0) << d;
  }
}

TEST_P(Statistics, HistogramsOnGrids) {
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

CATENA_ON_DEVICES(Statistics);

}  // namespace
}  // namespace catena
