// WalkerAlias: what the tables say, draws, and which probabilities are refused.
#include "catena/functions/noise/walker_alias.h"

#include <limits>

#include "catena/core/graph.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Alias : public OnDevice {
 protected:
  WalkerAlias sampler(const std::vector<double>& probs) const {
    const DeviceScope scope(device());
    return WalkerAlias(probs);
  }
};
CATENA_ON_DEVICES(Alias);

std::vector<double> shares(const std::vector<double>& probs) {
  double sum = 0;
  for (const double p : probs) sum += p;
  std::vector<double> result;
  for (const double p : probs) result.push_back(p / sum);
  return result;
}

// The probabilities that the tables give.
std::vector<double> tabled(const WalkerAlias& alias) {
  const auto threshold = alias.threshold.data().to_cpu().to_vector<double>(),
             values = alias.values.data().to_cpu().to_vector<double>();
  const size_t n = threshold.size();
  std::vector<double> p(n, 0.0);
  for (size_t s = 0; s < n; ++s) {
    p[size_t(values[2 * s])] += threshold[s] / double(n);
    p[size_t(values[2 * s + 1])] += (1 - threshold[s]) / double(n);
  }
  return p;
}

std::vector<double> frequencies(const Array& draws, size_t n) {
  std::vector<double> result(n, 0.0);
  for (const int32_t i : draws.to_cpu().to_vector<int32_t>())
    result.at(size_t(i)) += 1 / double(draws.size());
  return result;
}

TEST_P(Alias, TUT_41_FrequenciesAreTheProbabilities) {
  random::seed(41);
  const std::vector<double> probs{5, 3, 4, 1, 2};
  const Array draws = sampler(probs).sample({12000});
  EXPECT_EQ(draws.dtype(), Dtype::kInt32);
  EXPECT_EQ(draws.device(), device());
  const std::vector<double> found = frequencies(draws, 5), expected = shares(probs);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(found[i], expected[i], 0.015) << i;  // 3 standard deviations
    EXPECT_NEAR(found[i] / expected[i], 1, 0.1) << i;
  }
}

TEST_P(Alias, TheTablesGiveTheProbabilities) {
  for (const int64_t n : {1, 2, 7, 1000}) {
    const Array drawn = random_array({n}, 0, 1, Dtype::kFloat64, cpu(), uint64_t(n));
    std::vector<double> probs = (drawn * drawn * drawn).to_vector<double>();
    if (n > 2) probs[1] = 0;
    const WalkerAlias alias = sampler(probs);
    const std::vector<double> found = tabled(alias), expected = shares(probs);
    for (size_t i = 0; i < probs.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-7 * expected[i] + 1e-9) << i << " of " << n;
    EXPECT_EQ(alias.size(), n);
  }
}

TEST_P(Alias, ProbabilityZeroIsNeverDrawn) {
  random::seed(2);
  const double huge = std::numeric_limits<double>::max(),
               tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<double>> all{
      {0, 1},    {1, 0},          {0, 0, 3, 0}, {0.1, 0, 0.1, 0, 0.1, 0, 0.1, 0, 0.1, 0, 0.1},
      {0, huge}, {0, huge, huge}, {0, tiny},    {0, 0, 1e-300, 2e-300, 0}};
  for (const std::vector<double>& probs : all) {
    const WalkerAlias alias = sampler(probs);
    const std::vector<double> found = frequencies(alias.sample({5000}), probs.size()),
                              table = tabled(alias);
    for (size_t i = 0; i < probs.size(); ++i) {
      EXPECT_EQ(found[i] == 0, probs[i] == 0) << i << " of " << probs.size();
      EXPECT_EQ(table[i] == 0, probs[i] == 0) << i << " of " << probs.size();
    }
  }
}

// Many indices that rounding could leave without one to take from.
TEST_P(Alias, ManyZerosAndOneThird) {
  std::vector<double> probs(3000, 0.0);
  for (size_t i = 0; i < probs.size(); i += 3) probs[i] = 1.0 / 3;
  const std::vector<double> found = tabled(sampler(probs));
  for (size_t i = 0; i < probs.size(); ++i) {
    if (probs[i] == 0)
      EXPECT_EQ(found[i], 0) << i;
    else
      EXPECT_NEAR(found[i], 1e-3, 1e-9) << i;
  }
}

TEST_P(Alias, DrawsEveryShapeAndTheSameOnEveryDevice) {
  const WalkerAlias alias = sampler({1, 2, 3}), on_cpu(std::vector<double>{1, 2, 3});
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 3, 4}, Shape{5000}}) {
    random::seed(9);
    const Array draws = alias.sample(shape);
    random::seed(9);
    EXPECT_EQ(draws.shape(), shape);
    EXPECT_EQ(testing::difference(draws.to_cpu(), on_cpu.sample(shape)), "");
  }
  EXPECT_NE(testing::difference(alias.sample({50}), alias.sample({50})), "");
}

TEST_P(Alias, MovesAndCopiesItsTables) {
  const WalkerAlias alias(std::vector<double>{1, 2});
  WalkerAlias copy = alias;
  EXPECT_FALSE(copy.threshold == alias.threshold);
  copy.to(device());
  EXPECT_EQ(copy.sample({2}).device(), device());
  EXPECT_EQ(copy.persistent_names(), (std::vector<std::string>{"threshold", "values"}));
  EXPECT_TRUE(copy.parameter_names().empty());
  copy.to_cpu();
  EXPECT_TRUE(copy.sample({2}).device().is_cpu());
  const WalkerAlias moved = std::move(copy);
  EXPECT_EQ(moved.size(), 2);
  EXPECT_EQ(error_of<ValueError>([&] { copy.sample({2}); }),
            "WalkerAlias: this sampler has no tables; it was moved from");
}

TEST_P(Alias, RefusesWhatIsNotADistribution) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of<ValueError>([] { WalkerAlias(std::vector<double>{}); }),
            "WalkerAlias: expected from 1 to 2147483647 probabilities, got 0");
  EXPECT_EQ(error_of<ValueError>([] {
              WalkerAlias(std::vector<double>{1, -0.5});
            }),
            "WalkerAlias: probability -0.5 at position 1 is negative or not finite");
  EXPECT_THROW(WalkerAlias(std::vector<double>{1, std::nan("")}), ValueError);
  EXPECT_THROW(WalkerAlias(std::vector<double>{infinity}), ValueError);
  EXPECT_EQ(error_of<ValueError>([] {
              WalkerAlias(std::vector<double>{0, 0});
            }),
            "WalkerAlias: all 2 probabilities are 0; one must be above 0");
  EXPECT_EQ(error_of<ShapeError>([&] {
              WalkerAlias(draw({2, 2}, 0, 1));
            }),
            "WalkerAlias: expected probabilities with one axis, got shape (2, 2)");
  EXPECT_EQ(tabled(WalkerAlias(array(std::vector<int32_t>{1, 3}).to(device()))),
            (std::vector<double>{0.25, 0.75}));
}

TEST(AliasOnGpu, ReplaysDrawOn) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  const WalkerAlias alias(std::vector<double>{5, 3, 4, 1, 2});
  Array draws;
  cuda::Graph graph = cuda::Graph::capture(gpu, [&] { draws = alias.sample({1000}); });
  graph.launch();
  const Array first = draws.copy();
  graph.launch();
  EXPECT_NE(testing::difference(draws, first), "");
  EXPECT_NEAR(frequencies(draws, 5)[0], 1.0 / 3, 0.06);
}

}  // namespace
}  // namespace catena
