// Ends of gradients, periods, differences, phases and polynomials: numbers from NumPy.
#include <cmath>
#include <cstdint>

#include "array/devices.h"
#include "catena/array/calculus.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;
using ::error_of;

class Calculus : public OnDevice {
 protected:
  void expect_close(const Array& got, const V& expected) {
    EXPECT_TRUE(allclose(got.ravel().to(cpu()), array(expected, cpu()), 1e-12, 1e-14)) << got;
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

CATENA_ON_DEVICES(Calculus);

}  // namespace
}  // namespace catena
