// Seeds, default generators, shapes, dtypes and errors of the random functions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <thread>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/core/config.h"
#include "catena/core/stream.h"
#include "catena/testing.h"
#include "environment_scope.h"

namespace catena {
namespace {

using Draw = std::pair<const char*, std::function<Array(RandomState&, const Shape&)>>;

// Functions whose results are the same bits everywhere, and those that only agree closely.
const std::vector<Draw>& exact_draws() {
  static const std::vector<Draw> all = {
      {"uniform", [](RandomState& r, const Shape& s) { return r.uniform(s, -1, 2); }},
      {"uniform f32",
       [](RandomState& r, const Shape& s) { return r.uniform(s, -1, 2, Dtype::kFloat32); }},
      {"uniform f16",
       [](RandomState& r, const Shape& s) { return r.uniform(s, -1, 2, Dtype::kFloat16); }},
      {"randint", [](RandomState& r, const Shape& s) { return r.randint(-9, 1000, s); }},
      {"random_integers",
       [](RandomState& r, const Shape& s) { return r.random_integers(9, {}, s); }},
      {"interval", [](RandomState& r, const Shape& s) { return r.interval(77, s); }},
      {"bernoulli", [](RandomState& r, const Shape& s) { return r.bernoulli(s, 0.4); }},
      {"choice", [](RandomState& r, const Shape& s) { return r.choice(5, s); }},
      {"weighted choice",
       [](RandomState& r, const Shape& s) {
         return r.choice(3, s, true, array({0.2, 0.5, 0.3}));
       }},
      {"poisson", [](RandomState& r, const Shape& s) { return r.poisson(s, 7.5); }},
      {"binomial", [](RandomState& r, const Shape& s) { return r.binomial(s, 20, 0.3); }},
  };
  return all;
}
const std::vector<Draw>& close_draws() {
  static const std::vector<Draw> all = {
      {"normal", [](RandomState& r, const Shape& s) { return r.normal(s); }},
      {"lognormal", [](RandomState& r, const Shape& s) { return r.lognormal(s); }},
      {"exponential", [](RandomState& r, const Shape& s) { return r.exponential(s); }},
      {"gumbel", [](RandomState& r, const Shape& s) { return r.gumbel(s); }},
      {"laplace", [](RandomState& r, const Shape& s) { return r.laplace(s); }},
      {"logistic", [](RandomState& r, const Shape& s) { return r.logistic(s); }},
      {"gamma", [](RandomState& r, const Shape& s) { return r.gamma(s, 2.5); }},
      {"gamma below 1", [](RandomState& r, const Shape& s) { return r.gamma(s, 0.5); }},
      {"beta", [](RandomState& r, const Shape& s) { return r.beta(s, 2, 3); }},
      {"poisson by rejection", [](RandomState& r, const Shape& s) { return r.poisson(s, 2e6); }},
      {"geometric", [](RandomState& r, const Shape& s) { return r.geometric(s, 0.01); }},
      {"rayleigh", [](RandomState& r, const Shape& s) { return r.rayleigh(s); }},
  };
  return all;
}
std::vector<Draw> all_draws() {
  std::vector<Draw> all = exact_draws();
  all.insert(all.end(), close_draws().begin(), close_draws().end());
  return all;
}

TEST(RandomSeed, GivesTheSameOnEveryDevice) {
  for (int64_t n : {1, 3, 1000, 4099}) {
    for (Device device : catena::testing::devices()) {
      const auto compare = [&](const Draw& draw, double rtol) {
        RandomState here(42), there(42);
        const Array a = draw.second(here, {n});
        const DeviceScope scope(device);
        const Array b = draw.second(there, {n});
        EXPECT_EQ(b.device(), device);
        EXPECT_EQ(catena::testing::difference(b, a, rtol, rtol), "")
            << draw.first << " on " << device;
        EXPECT_EQ(here.state().offset, there.state().offset);
      };
      for (const Draw& draw : exact_draws()) compare(draw, 0);
      for (const Draw& draw : close_draws()) compare(draw, 1e-13);
    }
  }
}

TEST(RandomSeed, DoesNotDependOnThreads) {
  const int before = cpu_threads();
  for (const Draw& draw : all_draws()) {
    RandomState one(3), many(3);
    set_cpu_threads(1);
    const Array a = draw.second(one, {100003});
    set_cpu_threads(5);
    const Array b = draw.second(many, {100003});
    EXPECT_EQ(catena::testing::difference(a, b), "") << draw.first;
  }
  set_cpu_threads(before);
}

TEST(RandomSeed, StartsOverAndDiffers) {
  for (const Draw& draw : all_draws()) {
    RandomState state(1);
    const auto first = draw.second(state, {64}).to_vector<double>();
    const auto second = draw.second(state, {64}).to_vector<double>();
    state.seed(1);
    EXPECT_EQ(draw.second(state, {64}).to_vector<double>(), first) << draw.first;
    EXPECT_NE(second, first) << draw.first;
    state.seed(2);
    EXPECT_NE(draw.second(state, {64}).to_vector<double>(), first) << draw.first;
  }
}

TEST(RandomSeed, StateAndCopiesContinue) {
  RandomState state(8);
  state.normal({5});
  RandomState copy = state, restored(0);
  restored.set_state(state.state());
  const auto next = state.uniform({7}).to_vector<double>();
  EXPECT_EQ(copy.uniform({7}).to_vector<double>(), next);
  EXPECT_EQ(restored.uniform({7}).to_vector<double>(), next);
}

TEST(RandomSeed, OfEntropyDiffers) {
  RandomState a, b;
  EXPECT_NE(a.state().seed, b.state().seed);
  const uint64_t before = a.state().seed;
  a.seed();
  EXPECT_NE(a.state().seed, before);
  EXPECT_EQ(a.state().offset, 0u);
}

// The environment's seed as reset_states reads it.
class RandomEnvironment : public ::testing::Test {
 protected:
  void TearDown() override {
    environment_.reset();
    random::reset_states();
  }
  void set(const char* name, const EnvironmentScope::Value& value) {
    environment_->set(name, value);
  }

 private:
  std::optional<EnvironmentScope> environment_{std::in_place};
};

TEST_F(RandomEnvironment, SeedsTheDefaultGenerators) {
  RandomState& state = random::default_state(cpu(3));
  set("CATENA_SEED", {});
  set("CHAINER_SEED", "5");
  random::reset_states();
  EXPECT_EQ(state.state().seed, 5u);
  set("CATENA_SEED", "18446744073709551615");
  random::reset_states();
  EXPECT_EQ(state.state().seed, ~uint64_t{0});
  EXPECT_EQ(random::default_state(cpu(60)).state().seed, ~uint64_t{0}) << "made after the reset";
  for (const char* wrong : {"abc", "-1", "1.5", "18446744073709551616", "7 "}) {
    set("CATENA_SEED", wrong);
    EXPECT_THROW(random::reset_states(), ValueError) << wrong;
  }
}

TEST(RandomDefaults, ArePerDevice) {
  random::seed(4);
  EXPECT_EQ(&random::get_random_state(), &random::default_state(current_device()));
  EXPECT_NE(&random::default_state(cpu(1)), &random::default_state(cpu(2)));
  const auto first = random::default_state(cpu(1)).uniform({4}).to_vector<double>();
  EXPECT_EQ(random::default_state(cpu(2)).uniform({4}).to_vector<double>(), first);
  random::seed(9, cpu(1));
  EXPECT_EQ(random::default_state(cpu(1)).state().seed, 9u);
  EXPECT_EQ(random::default_state(cpu(2)).state().seed, 4u);
  random::seed();
  EXPECT_NE(random::default_state(cpu(2)).state().seed, 4u);
  EXPECT_EQ(random::default_state(cpu(1)).state().seed, random::default_state(cpu(2)).state().seed);
}

TEST(RandomFunctions, AreTheDefaultGenerators) {
  const auto same = [](const Array& a, const std::function<Array(RandomState&)>& draw) {
    RandomState state(12);
    EXPECT_EQ(catena::testing::difference(a, draw(state)), "");
    random::seed(12);
  };
  const Shape s{2, 3};
  random::seed(12);
  same(random::uniform(s, 1, 2), [&](RandomState& r) { return r.uniform(s, 1, 2); });
  same(random::normal(s, 1, 2), [&](RandomState& r) { return r.normal(s, 1, 2); });
  same(random::integers(s, 1, 9), [&](RandomState& r) { return r.integers(s, 1, 9); });
  same(random::bernoulli(s, 0.5), [&](RandomState& r) { return r.bernoulli(s, 0.5); });
  same(random::permutation(5), [&](RandomState& r) { return r.permutation(5); });
  same(random::random_sample(s), [&](RandomState& r) { return r.random_sample(s); });
  same(random::random(s), [&](RandomState& r) { return r.random_sample(s); });
  same(random::ranf(s), [&](RandomState& r) { return r.random_sample(s); });
  same(random::sample(s), [&](RandomState& r) { return r.random_sample(s); });
  same(random::standard_normal(s), [&](RandomState& r) { return r.standard_normal(s); });
  same(random::rand(2, 3), [&](RandomState& r) { return r.rand(s); });
  same(random::randn(2, 3), [&](RandomState& r) { return r.randn(s); });
  same(random::rand(s, Dtype::kFloat32),
       [&](RandomState& r) { return r.rand(s, Dtype::kFloat32); });
  same(random::randint(3, 8, s), [&](RandomState& r) { return r.randint(3, 8, s); });
  same(random::random_integers(3, 8, s),
       [&](RandomState& r) { return r.random_integers(3, 8, s); });
  same(random::lognormal(s), [&](RandomState& r) { return r.lognormal(s); });
  same(random::exponential(s, 3), [&](RandomState& r) { return r.exponential(s, 3); });
  same(random::gumbel(s), [&](RandomState& r) { return r.gumbel(s); });
  same(random::laplace(s), [&](RandomState& r) { return r.laplace(s); });
  same(random::logistic(s), [&](RandomState& r) { return r.logistic(s); });
  same(random::choice(6, s), [&](RandomState& r) { return r.choice(6, s); });
  EXPECT_EQ(random::bytes(11), RandomState(12).bytes(11));
}

TEST(RandomFunctions, WithoutAShapeAreZeroDimensional) {
  const std::pair<Array, Dtype> results[] = {
      {random::rand(), Dtype::kFloat64},          {random::randn(), Dtype::kFloat64},
      {random::randint(5), Dtype::kInt32},        {random::random_integers(5), Dtype::kInt32},
      {random::random_sample(), Dtype::kFloat64}, {random::lognormal(), Dtype::kFloat64},
      {random::normal(), Dtype::kFloat64},        {random::standard_normal(), Dtype::kFloat64},
      {random::uniform(), Dtype::kFloat64},       {random::exponential(), Dtype::kFloat64},
      {random::gumbel(), Dtype::kFloat64},        {random::choice(4), Dtype::kInt64},
      {RandomState(1).interval(3), Dtype::kInt32}};
  for (const auto& [a, dtype] : results) {
    EXPECT_EQ(a.shape(), Shape{});
    EXPECT_EQ(a.dtype(), dtype);
  }
  EXPECT_EQ(random::rand({0, 3}).size(), 0);
}

TEST(RandomFunctions, KeepTheirBounds) {
  RandomState state(3);
  const auto within = [](const Array& a, double low, double high) {
    for (double v : a.to_vector<double>()) {
      EXPECT_GE(v, low);
      EXPECT_LE(v, high);
    }
  };
  within(state.randint(3, 5, {500}), 3, 4);
  within(state.randint(2, {}, {500}), 0, 1);
  within(state.random_integers(3, 5, {500}), 3, 5);
  within(state.random_integers(2, {}, {500}), 1, 2);
  within(state.interval(0, {50}), 0, 0);
  within(state.interval(INT32_MAX, {500}), 0, INT32_MAX);
  within(state.exponential({500}, 0), 0, 0);
  within(state.normal({50}, 3, 0), 3, 3);
  const Array u = state.uniform({100000}, 0, 1, Dtype::kFloat32);
  within(u, 0, std::nextafter(1.0f, 0.0f));
}

// Rounding of low + u * (high - low) must not give high.
TEST(RandomFunctions, UniformRefusesRangesThatOverflow) {
  RandomState state(5);
  EXPECT_THROW(state.uniform({3}, -3e38, 3e38, Dtype::kFloat32), ValueError);
  EXPECT_THROW(state.uniform({3}, 0, 1e39, Dtype::kFloat16), ValueError);
  EXPECT_THROW(state.uniform({3}, 0, HUGE_VAL), ValueError);
  EXPECT_THROW(state.uniform({3}, -HUGE_VAL, 0), ValueError);
  EXPECT_THROW(state.uniform({3}, 0, std::nan("")), ValueError);
  EXPECT_THROW(state.uniform({3}, -1.7e308, 1.7e308, Dtype::kFloat64), ValueError);
  EXPECT_TRUE(all(isfinite(state.uniform({99}, -3e38, 3e38, Dtype::kFloat64))).item<bool>());
  EXPECT_TRUE(all(isfinite(state.uniform({99}, -1e38, 1e38, Dtype::kFloat32))).item<bool>());
}

TEST(RandomFunctions, UniformNumbersStayBelowHigh) {
  struct Range {
    double low, high;
    Dtype dtype;
    double last;  // the number of the dtype before high
  };
  const Range ranges[] = {{0, 1, Dtype::kFloat16, 1 - 0x1p-11},
                          {0, 1, Dtype::kBFloat16, 1 - 0x1p-8},
                          {-1.5, -0.5, Dtype::kFloat16, -0.5 - 0x1p-11},
                          {-3, -2, Dtype::kBFloat16, -2 - 0x1p-6},
                          {60000, 1e6, Dtype::kFloat16, 65504},
                          {100, 101, Dtype::kFloat32, 101 - 0x1p-17},
                          {101, 100, Dtype::kFloat32, 100 + 0x1p-17},
                          {1e15, 1e15 + 1, Dtype::kFloat64, 1e15 + 1 - 0x1p-3}};
  for (const Range& range : ranges) {
    RandomState state(5);
    const Array a = state.uniform({2000000}, range.low, range.high, range.dtype);
    const double low = amin(a).item<double>(), high = amax(a).item<double>();
    EXPECT_EQ(range.low < range.high ? high : low, range.last) << range.low << ' ' << range.high;
    EXPECT_TRUE(range.low < range.high ? low >= range.low : high <= range.low);
  }
  // Where no number lies between the bounds they are both that number.
  RandomState state(5);
  EXPECT_EQ(amax(state.uniform({9}, 1, 1 + 1e-9, Dtype::kFloat32)).item<double>(), 1);
  EXPECT_EQ(amax(state.rand({2000000}, Dtype::kFloat16)).item<double>(), 1 - 0x1p-11);
}

TEST(RandomFunctions, ThreadsDrawDifferentNumbers) {
  constexpr int kThreads = 4, kDraws = 20000;
  RandomState own(3);
  std::vector<double> numbers(2 * kThreads * kDraws);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      double* const out = &numbers[size_t(2 * t * kDraws)];
      for (int k = 0; k < kDraws; ++k) {
        out[2 * k] = random::uniform({}).item<double>();
        out[2 * k + 1] = own.uniform({}, 1, 2).item<double>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<double>(numbers.begin(), numbers.end()).size(), numbers.size());
  EXPECT_EQ(own.state().offset, uint64_t{kThreads} * kDraws);
}

TEST(RandomFunctions, RefuseWhatMakesNoSense) {
  RandomState r(1);
  EXPECT_THROW(r.randint(5, 5), ValueError);
  EXPECT_THROW(r.randint(0), ValueError);
  EXPECT_THROW(r.randint(0, 300, {2}, Dtype::kInt8), ValueError);
  EXPECT_THROW(r.randint(0, 3, {2}, Dtype::kFloat32), DtypeError);
  EXPECT_THROW(r.randint(int64_t{1} << 40), ValueError) << "int32";
  EXPECT_THROW(r.random_integers(5, 4), ValueError);
  EXPECT_THROW(r.random_integers(0, INT64_MAX, {}, Dtype::kInt64), ValueError);
  EXPECT_THROW(r.interval(-1), ValueError);
  EXPECT_THROW(r.rand({2}, Dtype::kInt32), DtypeError);
  EXPECT_THROW(r.randn({2}, Dtype::kBool), DtypeError);
  EXPECT_THROW(r.lognormal({2}, 0, -1), ValueError);
  EXPECT_THROW(r.lognormal({2}, 0, 1, Dtype::kInt8), DtypeError);
  EXPECT_THROW(r.normal({2}, 0, -1), ValueError);
  EXPECT_THROW(r.exponential({2}, -1), ValueError);
  EXPECT_THROW(r.exponential({2}, 1, Dtype::kInt32), DtypeError);
  EXPECT_THROW(r.gumbel({2}, 0, -1), ValueError);
  EXPECT_THROW(r.laplace({2}, 0, -1), ValueError);
  EXPECT_THROW(r.logistic({2}, 0, -1), ValueError);
  EXPECT_THROW(r.uniform({-1}), ShapeError);
  EXPECT_THROW(r.bytes(-1), ValueError);
  try {
    r.randint(7, 3);
    FAIL();
  } catch (const ValueError& e) {
    expect_contains(e.what(), {"low >= high"});
  }
}

TEST(RandomChoice, RefusesWhatMakesNoSense) {
  RandomState r(1);
  EXPECT_THROW(r.choice(0), ValueError);
  EXPECT_THROW(r.choice(3, {4}, false), ValueError);
  EXPECT_THROW(r.choice(3, {2}, true, array({0.5, 0.5})), ShapeError);
  EXPECT_THROW(r.choice(2, {2}, true, array({0.5, 0.6})), ValueError);
  EXPECT_THROW(r.choice(2, {2}, true, array({-0.5, 1.5})), ValueError);
  EXPECT_THROW(r.choice(3, {2}, false, array({1.0, 0.0, 0.0})), ValueError);
  EXPECT_THROW(r.choice(2, {2}, true, Array()), ValueError) << "probabilities without a value";
  EXPECT_THROW(r.choice(scalar_array(3)), ShapeError);
  EXPECT_THROW(r.permutation(scalar_array(3)), ShapeError);
  EXPECT_THROW(r.shuffle(scalar_array(3)), ShapeError);
}

TEST(RandomChoice, OfAnArrayTakesItsRows) {
  for (Device device : catena::testing::devices()) {
    const Array a = arange(12, device).reshape({4, 3});
    RandomState r(2);
    const Array rows = r.choice(a, {5, 2});
    EXPECT_EQ(rows.shape(), (Shape{5, 2, 3}));
    EXPECT_EQ(rows.device(), device);
    const auto v = rows.to_vector<int64_t>();
    for (size_t i = 0; i < v.size(); i += 3) {
      EXPECT_EQ(v[i] % 3, 0);
      EXPECT_EQ(v[i + 1], v[i] + 1);
    }
    const Array all = r.choice(a, {4}, false);
    std::set<int64_t> seen;
    for (int64_t value : all.to_vector<int64_t>()) seen.insert(value);
    EXPECT_EQ(seen.size(), 12u);
  }
}

TEST(RandomPermutation, KeepsRowsTogether) {
  for (Device device : catena::testing::devices()) {
    random::seed(3);
    const Array a = arange(3000, device).reshape({1000, 3}), before = a.copy();
    const Array p = random::permutation(a);
    EXPECT_EQ(catena::testing::difference(a, before), "");
    random::seed(3);
    random::shuffle(a);
    EXPECT_EQ(catena::testing::difference(a, p), "");
    auto v = a.to_vector<int64_t>();
    EXPECT_NE(v, before.to_vector<int64_t>());
    for (size_t i = 0; i < v.size(); i += 3) EXPECT_EQ(v[i + 2], v[i] + 2);
    std::sort(v.begin(), v.end());
    EXPECT_EQ(v, before.to_vector<int64_t>());
    const Array view = arange(20, device)(Slice({}, {}, 2));
    random::shuffle(view);
    auto w = view.to_vector<int64_t>();
    std::sort(w.begin(), w.end());
    EXPECT_EQ(w, (std::vector<int64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}));
  }
}

TEST(RandomStream, DrawsRunOnTheCurrentStream) {
  for (Device device : catena::testing::devices()) {
    RandomState direct(4), streamed(4);
    const Array expected = direct.normal({1000}, 0, 1, {Dtype::kFloat32, device});
    const Stream stream = Stream::create(device);
    Array a;
    {
      StreamScope scope(stream);
      a = streamed.normal({1000}, 0, 1, {Dtype::kFloat32, device});
    }
    current_stream(device).wait(stream);
    EXPECT_EQ(catena::testing::difference(a, expected), "");
  }
}

// Options come last, as where arrays are made: a dtype, a device, or both.
TEST(RandomOptions, NameDtypeAndDevice) {
  const Device there("cpu:1");
  const auto expect_on = [&](const char* what, const Array& x, Dtype dtype) {
    EXPECT_EQ(x.device(), there) << what;
    EXPECT_EQ(x.dtype(), dtype) << what;
  };
  expect_on("uniform", random::uniform({2}, 0, 1, {dtype::float32, "cpu:1"}), dtype::float32);
  expect_on("normal", random::normal({2}, 0, 1, there), dtype::float64);
  expect_on("rand", random::rand({2}, "cpu:1"), dtype::float64);
  expect_on("integers", random::integers({2}, 0, 9, "cpu:1"), dtype::int64);
  expect_on("randint", random::randint(9, {}, {2}, there), dtype::int32);
  expect_on("randint of a dtype", random::randint(9, {}, {2}, {dtype::int8, there}), dtype::int8);
  expect_on("random_integers", random::random_integers(9, {}, {2}, there), dtype::int32);
  expect_on("exponential", random::exponential({2}, 1, {dtype::float16, there}), dtype::float16);
  expect_on("lognormal", random::lognormal({2}, 0, 1, there), dtype::float64);
  expect_on("standard_cauchy", random::standard_cauchy({2}, there), dtype::float64);
  expect_on("gamma", random::gamma({2}, 2, 1, {dtype::float32, there}), dtype::float32);
  expect_on("of arrays", random::normal(none, zeros({2}, there), 1, there), dtype::float64);
  RandomState state(3);
  expect_on("a method", state.uniform({2}, 0, 1, {dtype::float32, there}), dtype::float32);
  expect_on("a method's device", state.integers({2}, 0, 9, there), dtype::int64);
}

// The numbers come from the generator of the device that is named.
TEST(RandomOptions, DrawFromTheGeneratorOfTheDevice) {
  random::seed(5, "cpu:1");
  const std::vector<double> named = random::normal({3}, 0, 1, "cpu:1").to_vector<double>();
  random::seed(5, "cpu:1");
  const DeviceScope scope("cpu:1");
  EXPECT_EQ(named, random::normal({3}).to_vector<double>());
}

TEST(RandomOptions, OfAnotherDeviceThanTheParametersAreAnError) {
  const Array scale = ones({2}, "cpu:0");
  expect_contains(error_of<DeviceError>([&] { random::exponential(none, scale, "cpu:1"); }),
                  {"exponential", "cpu:0", "cpu:1"});
}

}  // namespace
}  // namespace catena
