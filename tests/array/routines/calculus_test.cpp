// Interpolation, gradients, integrals, convolution, differences, phases, polynomials and cross
// products: numbers from NumPy.
#include <cmath>
#include <cstdint>
#include <limits>

#include "array/devices.h"
#include "catena/array/calculus.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;
using ::error_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Calculus : public OnDevice {
 protected:
  void expect_close(const Array& got, const V& expected) {
    EXPECT_TRUE(allclose(got.ravel().to(cpu()), array(expected, cpu()), 1e-12, 1e-14, true)) << got;
  }
};

TEST_P(Calculus, GradientsWithParabolicEnds) {
  const Array f = numbers({1, 4, 9, 16, 25});  // squares: exact
  EXPECT_EQ(values(gradient(f, 1, 0, EdgeOrder::kSecond)), (V{2, 4, 6, 8, 10}));
  EXPECT_EQ(values(gradient(f, 0.5, 0, EdgeOrder::kSecond)), (V{4, 8, 12, 16, 20}));
  const Array x = numbers({0, 1, 3, 4, 6}), y = square(x);
  expect_close(gradient(y, x, 0, EdgeOrder::kSecond), {0, 2, 6, 8, 12});
  EXPECT_EQ(values(gradient(f)[0]), (V{3, 4, 6, 8, 9}));
  const auto both = gradient(counting({3, 3}), 1, EdgeOrder::kSecond);
  EXPECT_EQ(values(both[0]), V(9, 3));
  EXPECT_EQ(values(both[1]), V(9, 1));
  expect_contains(error_of<ValueError>([&] {
                    gradient(numbers({1, 2}), 1, 0, EdgeOrder::kSecond);
                  }),
                  {"gradient: ", "3 samples"});
}

TEST_P(Calculus, CoordinatesAndSamplesThatFillTheirDtype) {
  const Array f = numbers({5, 4, 3, 2, 1});
  for (const Dtype d : {Dtype::kUInt8, Dtype::kUInt16, Dtype::kUInt32, Dtype::kUInt64}) {
    const Array x = ints({5, 4, 3, 2, 1}).astype(d);
    EXPECT_EQ(values(gradient(f, x, 0)), V(5, 1)) << d;
    EXPECT_EQ(values(gradient(f, x, 0, EdgeOrder::kSecond)), V(5, 1)) << d;
    EXPECT_EQ(values(trapezoid(f, x)), V{-12}) << d;
  }
  const Array x = ints({-100, 100, 120}).astype(Dtype::kInt8), y = numbers({0, 1, 2});
  expect_close(gradient(y, x, 0), {0.005, 0.0459090909090909, 0.05});
  EXPECT_EQ(values(trapezoid(y, x)), V{130});
  const Array high = full({3}, 60000, {Dtype::kFloat16, GetParam()});
  EXPECT_EQ(values(trapezoid(high, 0.5)), V{60000});
  EXPECT_EQ(gradient(y.astype(Dtype::kFloat32), numbers({0, 1, 2}), 0).dtype(), Dtype::kFloat32);
}

TEST_P(Calculus, PeriodicInterpolation) {
  const Array x = numbers({-180, -170, -185, 185, -10, -5, 0, 365}),
              xp = numbers({190, -190, 350, -350}), fp = numbers({5, 10, 3, 4});
  expect_close(interp(x, xp, fp, {}, {}, 360), {7.5, 5, 8.75, 6.25, 3, 3.25, 3.5, 3.75});
  expect_close(interp(1, numbers({5}), numbers({2}), {}, {}, 3), {2});
  expect_contains(error_of<ValueError>([&] { interp(x, xp, fp, {}, {}, 0); }),
                  {"interp: ", "period"});
  EXPECT_THROW(interp(x, xp, numbers({1}), {}, {}, 3), ShapeError);
}

TEST_P(Calculus, DifferencesJumpsAndPolynomials) {
  EXPECT_EQ(values(ediff1d(ints({1, 2, 4, 7}).reshape({2, 2}))), (V{1, 2, 3}));
  EXPECT_EQ(values(ediff1d(ints({1, 4}), {88, 99}, {-5})), (V{-5, 3, 88, 99}));
  EXPECT_EQ(values(ediff1d(ints({}), {1})), (V{1}));
  expect_contains(error_of<ValueError>([&] { ediff1d(ints({1, 2}), {1.5}); }), {"ediff1d: 1.5"});
  EXPECT_THROW(ediff1d(on(array({true, false}))), DtypeError);
  const Array phase = numbers({0, 0.5, 6, 6.2, 0.1}), tau = numbers({6.283185307179586});
  expect_close(unwrap(phase), {0, 0.5, 6 - 2 * M_PI, 6.2 - 2 * M_PI, 0.1});
  expect_close(unwrap(numbers({1, 5, 1, 7}), {}, -1, 4), {1, 1, 1, 3});
  expect_close(unwrap(numbers({0, 2, 0}), {}, -1, 4), {0, 2, 0});
  expect_close(unwrap(numbers({0, 5, 0}), 6, -1, 4), {0, 5, 0});
  EXPECT_THROW(unwrap(phase, {}, 0, -1), ValueError);
  EXPECT_EQ(values(vander(ints({1, 2, 3}))), (V{1, 1, 1, 4, 2, 1, 9, 3, 1}));
  EXPECT_EQ(values(vander(ints({2, 3}), 4, true)), (V{1, 2, 4, 8, 1, 3, 9, 27}));
  EXPECT_EQ(vander(ints({2, 3}), 0).shape(), (Shape{2, 0}));
  EXPECT_EQ(polyval(ints({3, 0, 1}), 5).item<int64_t>(), 76);
  EXPECT_EQ(values(polyval(numbers({1, -1}), numbers({2, 4}))), (V{1, 3}));
  EXPECT_EQ(values(polyval(numbers({}), numbers({2, 4}))), (V{0, 0}));
}

TEST_P(Calculus, Interpolation) {
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

TEST_P(Calculus, DerivativesAndIntegrals) {
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

TEST_P(Calculus, Convolution) {
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

TEST_P(Calculus, ConvolutionInBlocks) {
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

TEST_P(Calculus, CrossProducts) {
  const Array x = ints({1, 2, 3}), y = ints({4, 5, 6});
  EXPECT_EQ(values(cross(x, y)), (V{-3, 6, -3}));
  const Array rows = stack({x, y});
  EXPECT_EQ(values(cross(rows, y)), (V{-3, 6, -3, 0, 0, 0}));
  EXPECT_EQ(values(cross(rows.T(), stack({y, x}).T(), 0)), (V{-3, 3, 6, -6, -3, 3}));
  EXPECT_EQ(values(cross(ints({1, 2}), ints({3, 4}))), (V{-2}));
  EXPECT_EQ(cross(ints({1, 2}), ints({3, 4})).ndim(), 0);
  expect_contains(error_of<ShapeError>([&] { cross(x, ints({1, 2})); }), {"cross", "(3,)", "(2,)"});
}

CATENA_ON_DEVICES(Calculus);

}  // namespace
}  // namespace catena
