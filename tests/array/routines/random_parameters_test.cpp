// Distributions with arrays as parameters: what equal elements give, shapes, devices, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "array/devices.h"
#include "array/random_checks.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

using namespace test;

class RandomParameters : public OnDevice {};

using Parameters = std::vector<Operand>;
struct Distribution {
  const char* name;
  std::vector<double> values;  // of its parameters
  bool exact;                  // the same bits as with numbers
  std::function<Array(RandomState&, const DrawShape&, const Parameters&, Dtype)> draw;
};

// One line each: name, values of the parameters, whether exact, and their list.
#define CATENA_DISTRIBUTION(name, exact, list, ...)                  \
  {                                                                  \
#name, list, exact,                                              \
        [](RandomState & r, const DrawShape& s, const Parameters& p, \
           Dtype d) { return r.name(s, __VA_ARGS__, d); }            \
  }
using L = std::vector<double>;

const std::vector<Distribution>& distributions() {
  static const std::vector<Distribution> all = {
      CATENA_DISTRIBUTION(uniform, true, (L{-1.3, 2.6}), p[0], p[1]),
      CATENA_DISTRIBUTION(normal, true, (L{-1.3, 2.6}), p[0], p[1]),
      CATENA_DISTRIBUTION(lognormal, false, (L{0.3, 0.6}), p[0], p[1]),
      CATENA_DISTRIBUTION(exponential, false, (L{2.6}), p[0]),
      CATENA_DISTRIBUTION(gumbel, false, (L{-1.3, 2.6}), p[0], p[1]),
      CATENA_DISTRIBUTION(laplace, false, (L{-1.3, 2.6}), p[0], p[1]),
      CATENA_DISTRIBUTION(logistic, false, (L{-1.3, 2.6}), p[0], p[1]),
      CATENA_DISTRIBUTION(rayleigh, false, (L{2.6}), p[0]),
      CATENA_DISTRIBUTION(weibull, false, (L{1.7}), p[0]),
      CATENA_DISTRIBUTION(pareto, false, (L{1.7}), p[0]),
      CATENA_DISTRIBUTION(power, false, (L{1.7}), p[0]),
      CATENA_DISTRIBUTION(triangular, false, (L{-1.3, 0.2, 2.6}), p[0], p[1], p[2]),
  };
  return all;
}
#undef CATENA_DISTRIBUTION

Parameters as_numbers(const std::vector<double>& values) { return {values.begin(), values.end()}; }
Parameters as_operands(const std::vector<Array>& arrays) { return {arrays.begin(), arrays.end()}; }

double step_of(Dtype d) {
  return d == Dtype::kFloat64   ? 0x1p-52
         : d == Dtype::kFloat32 ? 0x1p-23
         : d == Dtype::kFloat16 ? 0x1p-10
                                : 0x1p-7;
}

// One array for each parameter, in turn of all of the shape, a row and a column.
std::vector<Array> equal_arrays(const std::vector<double>& values, size_t turn) {
  const Shape shapes[] = {{40, 30}, {30}, {40, 1}, {}};
  std::vector<Array> arrays;
  for (size_t k = 0; k < values.size(); ++k)
    arrays.push_back(full(shapes[(turn + k) % 4], values[k], Dtype::kFloat64));
  return arrays;
}

TEST_P(RandomParameters, EqualElementsGiveWhatTheNumberGives) {
  const DeviceScope scope(GetParam());
  for (const Distribution& c : distributions()) {
    for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
      for (size_t turn = 0; turn < 4; ++turn) {
        SCOPED_TRACE(std::string(c.name) + " " + name(d) + " turn " + std::to_string(turn));
        RandomState one(5), other(5);
        const Array expected = c.draw(one, {40, 30}, as_numbers(c.values), d);
        const std::vector<Array> arrays = equal_arrays(c.values, turn);
        const Array given = c.draw(other, {40, 30}, as_operands(arrays), d);
        ASSERT_EQ(given.dtype(), d);
        ASSERT_EQ(given.shape(), expected.shape());
        EXPECT_EQ(given.device(), GetParam());
        EXPECT_EQ(one.state().offset, other.state().offset);
        const double most = c.exact ? 0 : 4 * step_of(d);
        EXPECT_TRUE(allclose(given.astype(Dtype::kFloat64), expected.astype(Dtype::kFloat64), most,
                             c.exact ? 0 : most));
      }
    }
  }
}

TEST_P(RandomParameters, ShapesAreThoseOfTheParameters) {
  const DeviceScope scope(GetParam());
  for (const Distribution& c : distributions()) {
    SCOPED_TRACE(c.name);
    RandomState state(6);
    std::vector<Array> arrays = equal_arrays(c.values, 1);  // a row, a column, a number
    const Shape wide = c.values.size() == 1 ? Shape{30} : Shape{40, 30};
    EXPECT_EQ(c.draw(state, none, as_operands(arrays), Dtype::kFloat32).shape(), wide);
    EXPECT_EQ(c.draw(state, {2, 40, 30}, as_operands(arrays), Dtype::kFloat32).shape(),
              (Shape{2, 40, 30}));
    EXPECT_EQ(c.draw(state, none, as_numbers(c.values), Dtype::kFloat32).ndim(), 0);
    for (Array& a : arrays) a = a.astype(Dtype::kFloat32);
    EXPECT_EQ(c.draw(state, none, as_operands(arrays), Dtype::kFloat64).dtype(), Dtype::kFloat64);
    for (const Shape& wrong : {Shape{31}, Shape{1}, Shape{}, Shape{40, 31}}) {
      const std::string text = ::error_of<ShapeError>(
          [&] { c.draw(state, wrong, as_operands(arrays), Dtype::kFloat32); });
      expect_contains(text, {"(30,)"});
      EXPECT_EQ(text.rfind(std::string(c.name) + ":", 0), 0u) << text;
    }
    arrays[0] = ones({0, 1});
    EXPECT_EQ(c.draw(state, none, Parameters(c.values.size(), arrays[0]), Dtype::kFloat32).size(),
              0);
  }
  RandomState state(7);
  const Array rates = ones({5, 1}), more = ones({4});
  EXPECT_EQ(state.gamma(none, rates, more).shape(), (Shape{5, 4}));
  EXPECT_EQ(state.standard_gamma(none, rates).shape(), (Shape{5, 1}));
  EXPECT_EQ(state.beta(none, rates, more).shape(), (Shape{5, 4}));
  EXPECT_EQ(state.chisquare(none, more).shape(), (Shape{4}));
  EXPECT_EQ(state.f(none, rates, more).shape(), (Shape{5, 4}));
  EXPECT_EQ(state.standard_t(none, more).shape(), (Shape{4}));
  EXPECT_EQ(state.poisson(none, more).shape(), (Shape{4}));
  EXPECT_EQ(state.geometric(none, more).shape(), (Shape{4}));
  EXPECT_EQ(state.negative_binomial(none, more, 0.5).shape(), (Shape{4}));
  expect_contains(::error_of<ShapeError>([&] {
                    state.gamma(none, rates, ones({2, 3}));
                  }),
                  {"gamma: ", "(5, 1)", "(2, 3)"});
}

// Each element follows its own parameters.
TEST_P(RandomParameters, EachElementHasItsOwn) {
  const DeviceScope scope(GetParam());
  RandomState state(8);
  const Array means = numbers({-1000, 0, 7}).reshape({3, 1}), deviations = numbers({0.5, 2, 30});
  const Array z = state.normal({3, kCount}, means, deviations.reshape({3, 1}));
  const auto below_normal = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  for (int64_t k = 0; k < 3; ++k) {
    const Array standard = (z(k) - means(k, 0)) / deviations(k);
    EXPECT_LT(kolmogorov_smirnov(values(standard), below_normal), kKsLimit) << k;
  }
  const Array low = numbers({-1, 5, 100}).reshape({3, 1}), high = numbers({3, 4, 101});
  const Array u = state.uniform({3, kCount}, low, high.reshape({3, 1}));
  const auto below_uniform = [](double x) { return std::min(1.0, std::max(0.0, x)); };
  for (int64_t k = 0; k < 3; ++k) {
    const Array unit = (u(k) - low(k, 0)) / (high(k) - low(k, 0));
    EXPECT_LT(kolmogorov_smirnov(values(unit), below_uniform), kKsLimit) << k;
  }
  EXPECT_EQ(values(state.normal({3, 2}, means, 0)), (V{-1000, -1000, 0, 0, 7, 7}));
  EXPECT_EQ(values(state.gumbel({2, 3}, deviations, zeros({3}))), (V{0.5, 2, 30, 0.5, 2, 30}));
  const Array peaks = state.triangular({kCount, 3}, -1, numbers({-1, 0, 1}), 1);
  const V middle = values(mean(peaks, 0));
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(middle[k], (double(k) - 1) / 3, 0.01);
}

TEST_P(RandomParameters, UniformStaysOffItsUpperEnd) {
  const DeviceScope scope(GetParam());
  RandomState state(9);
  const Array low = numbers({0, 1, -3, 1000, 0, 2}), high = numbers({1, 0, -2.5, 1001, 1e-4, 2});
  for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    SCOPED_TRACE(name(d));
    const Array x = state.uniform({20000, 6}, low, high, d);
    const Array from = low.astype(d), to = high.astype(d);
    const Array inside =
        where(from < to, logical_and(x >= from, x < to), logical_and(x <= from, x > to));
    // In bfloat16 no number lies between 1000 and 1001, and none between 2 and 2.
    EXPECT_TRUE(all(logical_or(inside, logical_and(from == to, x == to))).item<bool>());
  }
}

TEST_P(RandomParameters, AreReproducibleAndOnTheArraysDevice) {
  const Array mean = counting({4}), scale = counting({3, 1}) + 1;
  for (const Distribution& c : distributions()) {
    if (c.values.size() != 2) continue;
    RandomState one(10), other(10);
    const Array a = c.draw(one, none, {mean, scale + 5}, Dtype::kFloat32),
                b = c.draw(other, none, {mean, scale + 5}, Dtype::kFloat32);
    EXPECT_EQ(a.device(), GetParam()) << c.name;
    EXPECT_EQ(values(a), values(b)) << c.name;
    EXPECT_NE(values(c.draw(one, none, {mean, scale + 5}, Dtype::kFloat32)), values(a)) << c.name;
  }
  random::seed(11, GetParam());
  RandomState same(11);
  EXPECT_EQ(values(random::normal(none, mean, scale)), values(same.normal(none, mean, scale)));
  EXPECT_EQ(values(random::uniform({3, 4}, mean, 9)), values(same.uniform({3, 4}, mean, 9)));
  EXPECT_EQ(values(random::gumbel(none, 0, scale)), values(same.gumbel(none, 0, scale)));
  EXPECT_EQ(values(random::pareto(none, scale)), values(same.pareto(none, scale)));
}

TEST_P(RandomParameters, WrongOnesAreNamed) {
  RandomState state(12);
  const Array bad = numbers({1, -2}), wrong = numbers({1, NAN}), nothing;
  const Array there = ones({2}, {GetParam() == cpu(1) ? cpu(2) : cpu(1)});
  const auto starts = [](const std::string& text, const char* who) {
    EXPECT_EQ(text.rfind(std::string(who) + ": ", 0), 0u) << text;
  };
  for (const Distribution& c : distributions()) {
    if (std::string(c.name) == "uniform") continue;
    Parameters p = as_numbers(c.values);
    for (const Array& array : {bad, wrong}) {
      p.back() = array;
      const std::string text =
          ::error_of<ValueError>([&] { c.draw(state, {2}, p, Dtype::kFloat32); });
      starts(text, c.name);
      expect_contains(text, {"expected"});
    }
    p.back() = -2;
    starts(::error_of<ValueError>([&] { c.draw(state, {2}, p, Dtype::kFloat32); }), c.name);
    p.back() = nothing;
    starts(::error_of<ValueError>([&] { c.draw(state, {2}, p, Dtype::kFloat32); }), c.name);
    p.back() = bad;
    starts(::error_of<DtypeError>([&] { c.draw(state, {2}, p, Dtype::kInt32); }), c.name);
    if (p.size() < 2) continue;
    p.front() = there;
    starts(::error_of<DeviceError>([&] { c.draw(state, {2}, p, Dtype::kFloat32); }), c.name);
  }
}

TEST_P(RandomParameters, TriangularShowsWhatDoesNotAscend) {
  RandomState state(13);
  expect_contains(::error_of<ValueError>([&] {
                    state.triangular({2, 3}, numbers({0, 1, 5}), numbers({3, 4, 3}), 6);
                  }),
                  {"triangular: ", "got 5, 3, 6 in element 2"});
}

TEST(RandomShapes, MayBeVectors) {
  EXPECT_EQ(random::exponential(std::vector<int64_t>{2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(random::gamma(std::vector<int>{4}, 2).shape(), Shape{4});
  EXPECT_EQ(random::uniform(std::vector<int>{4}, 0, 1).shape(), Shape{4});
}

CATENA_ON_DEVICES(RandomParameters);

}  // namespace
}  // namespace catena
