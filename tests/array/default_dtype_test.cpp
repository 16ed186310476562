// config().default_dtype: what obeys it, and what keeps a dtype of its own.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/array/sorting.h"
#include "catena/array/text.h"
#include "catena/array/windows.h"
#include "catena/core/config.h"
#include "temp_folder.h"

namespace catena {
namespace {

class DefaultDtype : public ::testing::TestWithParam<Dtype> {
 protected:
  void SetUp() override { config().default_dtype = GetParam(); }
  void TearDown() override { config().default_dtype = Dtype::kFloat64; }
};

using Makers = std::vector<std::pair<const char*, std::function<Array()>>>;

const Makers kFromNothing = {
    {"zeros", [] { return zeros({1}); }},     {"ones", [] { return ones({1}); }},
    {"empty", [] { return empty({1}); }},     {"eye", [] { return eye(2); }},
    {"identity", [] { return identity(2); }}, {"tri", [] { return tri(2); }},
};

const Makers kFloats = {
    {"linspace", [] { return linspace(0, 1, 3); }},
    {"linspace_with_step", [] { return linspace_with_step(0, 1, 3).first; }},
    {"logspace", [] { return logspace(0, 1, 3); }},
    {"geomspace", [] { return geomspace(1, 2, 3); }},
    {"arange(3.)", [] { return arange(3.); }},
    {"arange(0, 1, 0.5)", [] { return arange(0, 1, 0.5); }},
    {"full", [] { return full({1}, 2.5); }},
    {"full of a float", [] { return full({1}, 2.5f); }},
    {"where of floats", [] { return where(ones({2}, dtype::bool_), 0.5, 1.5); }},
    {"where of a float and an integer", [] { return where(ones({2}, dtype::bool_), 0.5, 1); }},
    {"maximum of floats", [] { return maximum(0.5, 1.5); }},
    {"scalar_array", [] { return scalar_array(2.5); }},
    {"array of doubles", [] { return array({1.5}); }},
    {"array of rows of doubles",
     [] {
       return array({{1.5}, {2.5}});
     }},
    {"array of mixed numbers",
     [] {
       return array({1, 2.5});
     }},
    {"array of a number", [] { return array(2.5); }},
    {"deep array", [] { return array({{{1.5}}}); }},
    {"bartlett", [] { return bartlett(4); }},
    {"hanning", [] { return hanning(4); }},
    {"hamming of 1", [] { return hamming(1); }},
    {"blackman", [] { return blackman(4); }},
    {"uniform", [] { return random::uniform({2}); }},
    {"uniform of arrays", [] { return random::uniform(none, zeros({2}), 1); }},
    {"normal", [] { return random::normal({2}); }},
    {"normal of arrays", [] { return random::normal(none, zeros({2}), 1); }},
    {"random", [] { return random::random({2}); }},
    {"random_sample", [] { return random::random_sample({2}); }},
    {"ranf", [] { return random::ranf({2}); }},
    {"sample", [] { return random::sample({2}); }},
    {"rand", [] { return random::rand(2, 2); }},
    {"randn", [] { return random::randn({2}); }},
    {"standard_normal", [] { return random::standard_normal({2}); }},
    {"standard_cauchy", [] { return random::standard_cauchy({2}); }},
    {"lognormal", [] { return random::lognormal({2}); }},
    {"exponential", [] { return random::exponential({2}); }},
    {"gumbel", [] { return random::gumbel({2}); }},
    {"laplace", [] { return random::laplace({2}); }},
    {"logistic", [] { return random::logistic({2}); }},
    {"rayleigh", [] { return random::rayleigh({2}); }},
    {"weibull", [] { return random::weibull({2}, 2); }},
    {"pareto", [] { return random::pareto({2}, 2); }},
    {"power", [] { return random::power({2}, 2); }},
    {"triangular", [] { return random::triangular({2}, 0, 1, 2); }},
    {"gamma", [] { return random::gamma({2}, 2); }},
    {"standard_gamma", [] { return random::standard_gamma({2}, 2); }},
    {"beta", [] { return random::beta({2}, 1, 2); }},
    {"chisquare", [] { return random::chisquare({2}, 2); }},
    {"f", [] { return random::f({2}, 1, 2); }},
    {"standard_t", [] { return random::standard_t({2}, 2); }},
    {"dirichlet", [] { return random::dirichlet({2}, ones({3})); }},
    {"RandomState", [] { return RandomState(1).uniform({2}); }},
};

TEST_P(DefaultDtype, IsThatOfNewArrays) {
  for (const auto& [name, make] : kFromNothing) EXPECT_EQ(make().dtype(), GetParam()) << name;
}

TEST_P(DefaultDtype, IsThatOfNewFloats) {
  const Dtype expected = is_float(GetParam()) ? GetParam() : Dtype::kFloat64;
  EXPECT_EQ(default_float(), expected);
  for (const auto& [name, make] : kFloats) EXPECT_EQ(make().dtype(), expected) << name;
  TempFolder folder;
  savetxt(folder / "a.txt", arange(3));
  EXPECT_EQ(loadtxt(folder / "a.txt").dtype(), expected);
}

// Typed data, integers and promotion do not ask for it.
TEST_P(DefaultDtype, LeavesWhatHasADtype) {
  const std::vector<double> doubles{1, 2};
  const std::vector<float> floats{1, 2};
  const Makers float64s = {
      {"vector", [&] { return array(doubles); }},
      {"vector with a shape",
       [&] {
         return array(doubles, {2, 1});
       }},
      {"span", [&] { return array(std::span<const double>(doubles), {2}); }},
      {"std::array",
       [] {
         return array(std::array<double, 2>{1, 2});
       }},
      {"rows", [&] { return array(std::vector<std::vector<double>>{doubles}); }},
      {"sqrt of integers", [] { return sqrt(arange(3)); }},
      {"mean of integers", [] { return mean(arange(3)); }},
      {"quotient of integers", [] { return arange(3) / 2; }},
      {"said", [] { return linspace(0, 1, 3, true, dtype::float64); }},
      {"said of literals", [] { return array({1.5}, dtype::float64); }},
      {"said of random", [] { return random::normal({1}, 0, 1, dtype::float64); }},
  };
  for (const auto& [name, make] : float64s) EXPECT_EQ(make().dtype(), Dtype::kFloat64) << name;
  EXPECT_EQ(array({1.5f}).dtype(), Dtype::kFloat32);
  EXPECT_EQ(array(floats).dtype(), Dtype::kFloat32);
  EXPECT_EQ(array({1, 2}).dtype(), Dtype::kInt32);
  EXPECT_EQ(arange(3).dtype(), Dtype::kInt64);
  EXPECT_EQ(full({1}, 2).dtype(), Dtype::kInt64);
  EXPECT_EQ(full({1}, true).dtype(), Dtype::kBool);
  EXPECT_EQ(random::integers({2}, 0, 5).dtype(), Dtype::kInt64);
  EXPECT_EQ(random::randint(5).dtype(), Dtype::kInt32);
  EXPECT_EQ(random::poisson({2}, 3).dtype(), Dtype::kInt64);
  TempFolder folder;
  save(folder / "a.npy", array(doubles));
  EXPECT_EQ(load(folder / "a.npy").dtype(), Dtype::kFloat64);
}

// What is computed in float64 inside does not become coarser.
TEST_P(DefaultDtype, LeavesCountsAlone) {
  const auto draw = [] {
    RandomState state(3);
    return std::vector<std::vector<int64_t>>{
        state.poisson({50}, arange(50) + 1.0).to_vector<int64_t>(),
        state.binomial({50}, 100, 0.3).to_vector<int64_t>(),
        state.geometric({50}, 0.01).to_vector<int64_t>(),
        state.multinomial({2}, 1000, array(std::vector<double>{0.25, 0.75})).to_vector<int64_t>()};
  };
  const auto got = draw();
  const std::vector<double> gamma =
      RandomState(3).gamma({50}, 2.5, 1, dtype::float64).to_vector<double>();
  config().default_dtype = Dtype::kFloat64;
  EXPECT_EQ(got, draw());
  EXPECT_EQ(gamma, RandomState(3).gamma({50}, 2.5, 1, dtype::float64).to_vector<double>());
}

// Nor do numbers that are asked for in float64: nothing inside is drawn in a coarser dtype.
TEST_P(DefaultDtype, LeavesDrawsOfFloat64Alone) {
  constexpr Dtype kWide = Dtype::kFloat64;
  const std::vector<std::pair<const char*, std::function<Array(RandomState&)>>> draws = {
      {"uniform of arrays", [](RandomState& r) { return r.uniform(none, arange(3), 5, kWide); }},
      {"normal of arrays", [](RandomState& r) { return r.normal(none, arange(3), 1, kWide); }},
      {"lognormal", [](RandomState& r) { return r.lognormal({9}, 0, 1, kWide); }},
      {"exponential", [](RandomState& r) { return r.exponential({9}, 1, kWide); }},
      {"gumbel", [](RandomState& r) { return r.gumbel({9}, 0, 1, kWide); }},
      {"laplace", [](RandomState& r) { return r.laplace({9}, 0, 1, kWide); }},
      {"logistic", [](RandomState& r) { return r.logistic({9}, 0, 1, kWide); }},
      {"rayleigh", [](RandomState& r) { return r.rayleigh({9}, 1, kWide); }},
      {"weibull", [](RandomState& r) { return r.weibull({9}, 2, kWide); }},
      {"pareto", [](RandomState& r) { return r.pareto({9}, 2, kWide); }},
      {"power", [](RandomState& r) { return r.power({9}, 2, kWide); }},
      {"triangular", [](RandomState& r) { return r.triangular({9}, 0, 1, 2, kWide); }},
      {"standard_cauchy", [](RandomState& r) { return r.standard_cauchy({9}, kWide); }},
      {"gamma", [](RandomState& r) { return r.gamma({9}, 2, 1, kWide); }},
      {"beta", [](RandomState& r) { return r.beta({9}, 1, 2, kWide); }},
      {"chisquare", [](RandomState& r) { return r.chisquare({9}, 2, kWide); }},
      {"f", [](RandomState& r) { return r.f({9}, 1, 2, kWide); }},
      {"standard_t", [](RandomState& r) { return r.standard_t({9}, 3, kWide); }},
      {"dirichlet", [](RandomState& r) { return r.dirichlet({3}, ones({3}, kWide), kWide); }},
  };
  for (const auto& [name, draw] : draws) {
    RandomState one(7), other(7);
    config().default_dtype = GetParam();
    const std::vector<double> got = draw(one).to_vector<double>();
    config().default_dtype = Dtype::kFloat64;
    EXPECT_EQ(got, draw(other).to_vector<double>()) << name;
  }
}

// A number that is looked for among sorted ones keeps its digits.
TEST_P(DefaultDtype, LeavesComparedNumbersAlone) {
  const Array sorted = array(std::vector<double>{0.1, 0.2});
  EXPECT_EQ(searchsorted(sorted, 0.1).item<int>(), 0);
  EXPECT_EQ(searchsorted(sorted, 0.1, true).item<int>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, DefaultDtype,
                         ::testing::Values(Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16,
                                           Dtype::kInt32),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace catena
