// Plans by the keys of their problems, and that keys and texts tell problems apart.
#include "backends/common/plan_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backends/common/convolution_problem.h"
#include "catena/array/creation.h"
#include "catena/core/error.h"

namespace catena {
namespace {

template <class... Words>
PlanKey key(const Words&... words) {
  PlanKey made;
  ((made << words), ...);
  return made;
}
const PlanKey kA = key(1), kB = key(2), kC = key(3);

TEST(PlanCache, KeepsThePlansUsedLast) {
  PlanCache<int> cache(2);
  EXPECT_EQ(cache.find(kA), nullptr);
  const auto a = cache.keep(kA, std::make_shared<int>(1));
  cache.keep(kB, std::make_shared<int>(2));
  EXPECT_EQ(*cache.find(kA), 1);  // b is the older one now
  cache.keep(kC, std::make_shared<int>(3));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.find(kB), nullptr);
  EXPECT_EQ(cache.find(kA), a);
  EXPECT_EQ(*cache.find(kC), 3);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.find(kA), nullptr);
}

TEST(PlanCache, KeepsTheFirstPlanOfAKey) {
  PlanCache<int> cache(2);
  const auto first = cache.keep(kA, std::make_shared<int>(1));
  EXPECT_EQ(cache.keep(kA, std::make_shared<int>(2)), first);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(PlanCache, APlanOutlivesItsPlace) {
  PlanCache<int> cache(1);
  const auto a = cache.keep(kA, std::make_shared<int>(1));
  cache.keep(kB, std::make_shared<int>(2));
  EXPECT_EQ(cache.find(kA), nullptr);
  EXPECT_EQ(*a, 1);
}

// Also where their hashes are equal.
TEST(PlanKey, AreEqualByTheirNumbersAlone) {
  constexpr PlanWord kOne = "one", kOther = "other";
  EXPECT_EQ(key(1, 23), key(1, 23));
  EXPECT_NE(key(1, 23), key(12, 3));
  EXPECT_NE(key(1), key(1, 0));
  EXPECT_NE(key(), key(0));
  EXPECT_EQ(key(kOne, 1), key(kOne, 1));
  EXPECT_NE(key(kOne, 1), key(kOther, 1));
  EXPECT_NE(key(Dtype::kFloat32), key(Dtype::kFloat16));
  EXPECT_EQ(key(1, 2, 3).hash(), key(1, 2, 3).hash());
  PlanKey full;
  for (int i = 0; i < 64; ++i) full << i;
  EXPECT_THROW(full << 64, ValueError);
}

// No two of many similar problems have the same hash, neither whole nor in its last bits alone.
TEST(PlanKey, HashesAreSpread) {
  std::set<uint64_t> hashes, low;
  for (int a = 0; a < 64; ++a)
    for (int b = 0; b < 64; ++b) {
      const uint64_t hash = key(a, 7, b).hash();
      hashes.insert(hash);
      low.insert(hash & 0xffff);
    }
  EXPECT_EQ(hashes.size(), 4096u);
  EXPECT_GT(low.size(), 3800u);  // by chance 3970 of 4096
}

TEST(PlanText, SeparatesWordsAndNumbers) {
  constexpr PlanWord kX = "x";
  PlanText a, b;
  a << kX << 1 << 23;
  b << kX << 12 << 3;
  EXPECT_NE(a.text(), b.text());
  EXPECT_EQ(a.text(), "x 1 23 ");
  PlanText low;
  low << INT64_MIN << true << Dtype::kBFloat16;
  EXPECT_EQ(low.text(), "-9223372036854775808 1 bfloat16 ");
}

// Each field that decides how a convolution is computed is in its key and its text.
TEST(PlanKey, TellsConvolutionsApart) {
  const Array x = zeros({2, 4, 6, 5}, dtype::float32), W = zeros({8, 4, 3, 3}, dtype::float32),
              y = zeros({2, 8, 4, 3}, dtype::float32), b = zeros({8}, dtype::float32);
  const Window window{{3, 3}, {1, 1}, {0, 0}, {1, 1}};
  const ConvolutionProblem plain = problem_of(ConvolutionCall{&x, &W, nullptr, &y, window, 1});
  std::vector<ConvolutionProblem> all(25, plain);
  size_t k = 1;
  all[k++] = problem_of(ConvolutionCall{&x, &W, &b, &y, window, 1});
  all[k++] = problem_of(ConvolutionGradXCall{&y, &W, &x, window, 1, false});
  all[k++] = problem_of(ConvolutionGradXCall{&y, &W, &x, window, 1, true});
  all[k++] = problem_of(ConvolutionGradWCall{&x, &y, &W, window, 1, false});
  all[k++].dtype = Dtype::kBFloat16;
  all[k++].channels_last = true;
  all[k++].weights_last = true;
  all[k++].batch = 3;
  all[k++].channels = 8;
  all[k++].filters = 4;
  all[k++].groups = 2;
  all[k++].window.axes = 1;
  for (int axis = 0; axis < 2; ++axis) {
    ASSERT_LE(k + 6, all.size());
    all[k++].image[axis] = 99;
    all[k++].out[axis] = 99;
    all[k++].window.kernel[axis] = 99;
    all[k++].window.stride[axis] = 99;
    all[k++].window.pad[axis] = 99;
    all[k++].window.dilation[axis] = 99;
  }
  ASSERT_EQ(k, all.size());
  PlanCache<size_t> keys(all.size());
  std::set<std::string> texts;
  for (const ConvolutionProblem& problem : all) {
    PlanKey key;
    problem.describe(key);
    EXPECT_EQ(keys.find(key), nullptr);
    keys.keep(key, std::make_shared<size_t>());
    PlanText text;
    problem.describe(text);
    texts.insert(text.text());
  }
  EXPECT_EQ(keys.size(), all.size());
  EXPECT_EQ(texts.size(), all.size());
}

TEST(ConvolutionProblem, SizesOfLibraries) {
  const Array x = zeros({2, 4, 6, 5}, dtype::float32), W = zeros({8, 4, 1, 1}, dtype::float32),
              y = zeros({2, 8, 6, 5}, dtype::float32);
  const Window window{{1, 1}, {1, 1}, {0, 0}, {1, 1}};
  ConvolutionProblem p = problem_of(ConvolutionCall{&x, &W, nullptr, &y, window, 1});
  EXPECT_TRUE(p.is_pointwise());
  EXPECT_EQ(p.positions(), 30);
  EXPECT_EQ(p.multiply_adds(), 2.0 * 8 * 30 * 4);
  EXPECT_TRUE(p.fits_32_bits());
  p.window.stride[1] = int64_t{1} << 40;
  EXPECT_FALSE(p.fits_32_bits());
  EXPECT_FALSE(p.is_pointwise());
}

}  // namespace
}  // namespace catena
