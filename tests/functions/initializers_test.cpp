#include "catena/functions/initializers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "error_text.h"

namespace catena::initializers {
namespace {

namespace F = functions;

std::vector<Device> devices() {
  std::vector<Device> result{cpu(0), cpu(1)};
  if (device_count(DeviceType::kCuda) > 0) result.push_back(cuda_device(0));
  return result;
}

// What an initializer gives for weights (40, 30, 5, 5): fan_in 750, fan_out 1000.
struct Case {
  const char* name;
  Initializer initializer;
  double deviation;
  double bound;  // of uniform ones, else 0
};

const Case kCases[] = {
    {"Uniform", Uniform(0.3), 0.3 / std::sqrt(3), 0.3},
    {"Normal", Normal(0.3), 0.3, 0},
    {"LeCunNormal", LeCunNormal(), std::sqrt(1 / 750.0), 0},
    {"LeCunUniform", LeCunUniform(2), 2 * std::sqrt(1 / 750.0), 2 * std::sqrt(3 / 750.0)},
    {"GlorotNormal", GlorotNormal(3), 3 * std::sqrt(2 / 1750.0), 0},
    {"GlorotUniform", GlorotUniform(), std::sqrt(2 / 1750.0), std::sqrt(6 / 1750.0)},
    {"HeNormal", F::initializers::HeNormal(), std::sqrt(2 / 750.0), 0},
    {"HeUniform", HeUniform(0.5), 0.5 * std::sqrt(2 / 750.0), 0.5 * std::sqrt(6 / 750.0)},
};
const Shape kWeights{40, 30, 5, 5};

TEST(Initializers, HaveTheirMoments) {
  for (const Device device : devices()) {
    random::seed(7);
    for (const Case& c : kCases) {
      const Array a = c.initializer(kWeights, device);
      EXPECT_EQ(a.dtype(), dtype::float32);
      EXPECT_EQ(a.device(), device);
      double sum = 0, squares = 0, largest = 0;
      for (const double v : a.to_vector<double>()) {
        sum += v;
        squares += v * v;
        largest = std::max(largest, std::abs(v));
      }
      const double n = double(a.size());
      // 30,000 numbers: deviations of mean and standard deviation are 0.6 % and 0.4 %.
      EXPECT_NEAR(sum / n, 0, 0.03 * c.deviation) << c.name;
      EXPECT_NEAR(std::sqrt(squares / n), c.deviation, 0.02 * c.deviation) << c.name;
      if (c.bound > 0) {
        EXPECT_LE(largest, c.bound * (1 + 1e-6)) << c.name;
      } else {
        EXPECT_GT(largest, 3 * c.deviation) << c.name;
      }
    }
  }
}

TEST(Initializers, EqualSeedsGiveEqualNumbersOnEveryDevice) {
  for (const Case& c : kCases) {
    std::vector<double> first;
    for (const Device device : devices()) {
      random::seed(11);
      const std::vector<double> values = c.initializer({50, 20}, device).to_vector<double>();
      if (first.empty()) first = values;
      for (size_t i = 0; i < first.size(); ++i) {
        if (c.bound > 0) {
          ASSERT_EQ(values[i], first[i]) << c.name << " on " << device;
        } else {
          ASSERT_NEAR(values[i], first[i], 1e-6 * std::abs(first[i])) << c.name << " on " << device;
        }
      }
      EXPECT_NE(c.initializer({50, 20}, device).to_vector<double>(), first) << c.name;
    }
  }
}

// W W^T = scale^2 I, or W^T W where there are more rows.
void expect_orthogonal(const Array& w, double scale) {
  const int64_t rows = w.shape()[0], columns = w.size() / rows;
  const std::vector<double> v = w.to_vector<double>();
  const bool tall = rows > columns;
  const int64_t n = std::min(rows, columns), m = std::max(rows, columns);
  const auto at = [&](int64_t i, int64_t k) {
    return v[size_t(tall ? k * columns + i : i * columns + k)];
  };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double product = 0;
      for (int64_t k = 0; k < m; ++k) product += at(i, k) * at(j, k);
      ASSERT_NEAR(product, i == j ? scale * scale : 0, 1e-6) << w.shape() << " " << i << " " << j;
    }
  }
}

TEST(Initializers, OrthogonalRowsOrColumnsAreOrthonormal) {
  for (const Device device : devices()) {
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 5}, Shape{100, 150}, Shape{150, 100},
                               Shape{70, 70}, Shape{20, 3, 3, 3}, Shape{7}})
      expect_orthogonal(Orthogonal(1)(shape, device), 1);
    expect_orthogonal(Orthogonal()({40, 60}, device), 1.1);
    expect_orthogonal(Orthogonal(2)({40, 60}, {dtype::float64, device}), 2);
    EXPECT_EQ(Orthogonal()({0, 4}, device).shape(), Shape({0, 4}));
    random::seed(3);
    const std::vector<double> first = Orthogonal()({6, 9}, device).to_vector<double>();
    random::seed(3);
    EXPECT_EQ(Orthogonal()({6, 9}, device).to_vector<double>(), first);
  }
}

// Every direction is equally likely: the first number of the first row is as often below 0.
TEST(Initializers, OrthogonalPrefersNoDirection) {
  random::seed(5);
  int below = 0;
  double squares = 0;
  for (int i = 0; i < 400; ++i) {
    const double v = Orthogonal(1)({4, 4}).to_vector<double>()[15];
    below += v < 0;
    squares += v * v / 400;
  }
  EXPECT_NEAR(below, 200, 50);  // five deviations
  EXPECT_NEAR(squares, 0.25, 0.06);
}

TEST(Initializers, ConstantsAndDtypes) {
  EXPECT_EQ(Constant(2.5)({3}).to_vector<double>(), (std::vector<double>{2.5, 2.5, 2.5}));
  EXPECT_EQ(Zero()({2}).to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_EQ(One()({2}, dtype::float16).to_vector<double>(), (std::vector<double>{1, 1}));
  for (const Dtype dtype : {dtype::float16, dtype::bfloat16, dtype::float32, dtype::float64}) {
    for (const Case& c : kCases) EXPECT_EQ(c.initializer({4, 4}, dtype).dtype(), dtype) << c.name;
    EXPECT_EQ(Orthogonal()({4, 4}, dtype).dtype(), dtype);
  }
  EXPECT_EQ(HeNormal()({0, 5}).size(), 0);
}

TEST(Initializers, FansAreThoseOfWeights) {
  const Fans linear = fans_of({3, 4}), window = fans_of({8, 2, 3, 5});
  EXPECT_EQ(linear.in, 4);
  EXPECT_EQ(linear.out, 3);
  EXPECT_EQ(window.in, 30);
  EXPECT_EQ(window.out, 120);
}

TEST(Initializers, LayersTakeFunctionsAndArrays) {
  const auto ramp = [](const Shape& shape, const ArrayOptions& options) {
    return arange(element_count(shape)).reshape(shape).astype(*options.dtype);
  };
  EXPECT_EQ(F::Linear(2, 2, {.initialW = ramp}).W.data().to_vector<double>(),
            (std::vector<double>{0, 1, 2, 3}));
  const std::optional<Array> given = ones({2, 2}, dtype::float64);
  EXPECT_EQ(F::Linear(2, 2, {.initialW = given}).W.dtype(), dtype::float64);
  EXPECT_FALSE(bool(InitialValue(std::optional<Array>())));
}

TEST(Initializers, ErrorsSayWhatWasGiven) {
  expect_contains(error_of<ValueError>([] { HeNormal(-1); }),
                  {"HeNormal: expected a finite scale of at least 0, got -1"});
  expect_contains(error_of<ValueError>([] { Uniform{double(NAN)}; }), {"Uniform", "got nan"});
  expect_contains(error_of<ValueError>([] { GlorotNormal()({3}); }),
                  {"fans_of", "(out, in, ...)", "(3,)", "Constant"});
  expect_contains(error_of<DtypeError>([] { Normal()({3}, dtype::int32); }),
                  {"Normal", "floating dtype", "int32"});
  expect_contains(error_of<ValueError>([] { Orthogonal()({}); }), {"Orthogonal", "one axis"});
  const auto wrong = [](const Shape&, const ArrayOptions&) { return ones({2}); };
  expect_contains(error_of<ShapeError>([&] { F::Linear(2, 3, {.initialW = wrong}); }),
                  {"Linear: initialW has shape (2,), expected (out, in) = (3, 2)"});
}

}  // namespace
}  // namespace catena::initializers
