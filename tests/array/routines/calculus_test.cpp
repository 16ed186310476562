// Interpolation, gradients, integrals, convolution, differences, phases, polynomials and cross
// products: numbers from NumPy.
#include <cstdint>
#include <limits>

#include "array/devices.h"
#include "catena/array/calculus.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"

namespace catena {
namespace {

using namespace test;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Calculus : public OnDevice {
 protected:
  void expect_close(const Array& got, const V& expected) {
    EXPECT_TRUE(allclose(got.ravel().to(cpu()), array(expected, cpu()), 1e-12, 1e-14, true)) << got;
  }
};

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

// Values are cases of tests/oracle.
TEST_P(Calculus, RefusesWhatMakesNoSense) {
  const Array x = numbers({0, 1, 2}), y = numbers({1, 2});
  expect_contains(error_of<ValueError>([&] { gradient(y, 1, 0, EdgeOrder::kSecond); }),
                  {"gradient: ", "3 samples"});
  expect_contains(error_of<ValueError>([&] { interp(x, x, x, {}, {}, 0); }),
                  {"interp: ", "period"});
  EXPECT_THROW(interp(x, x, y, {}, {}, 3), ShapeError);
  expect_contains(error_of<ShapeError>([&] { interp(1, x, y); }), {"interp", "3", "2"});
  EXPECT_THROW(interp(1, numbers({}), numbers({})), ValueError);
  expect_contains(error_of<ValueError>([&] { ediff1d(ints({1, 2}), {1.5}); }), {"ediff1d: 1.5"});
  EXPECT_THROW(ediff1d(on(array({true, false}))), DtypeError);
  EXPECT_THROW(unwrap(x, {}, 0, -1), ValueError);
  EXPECT_THROW(convolve(x, numbers({})), ValueError);
  EXPECT_THROW(convolve(x.reshape({1, 3}), x), ShapeError);
  expect_contains(error_of<ShapeError>([&] { cross(x, y); }), {"cross", "(3,)", "(2,)"});
}

TEST_P(Calculus, GradientsOfAllAxesWithParabolicEnds) {
  const auto both = gradient(counting({3, 3}), 1, EdgeOrder::kSecond);
  EXPECT_EQ(values(both[0]), V(9, 3));
  EXPECT_EQ(values(both[1]), V(9, 1));
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

CATENA_ON_DEVICES(Calculus);

}  // namespace
}  // namespace catena
