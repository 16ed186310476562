// Plans by the text of their problems, and that texts tell problems apart.
#include "backends/common/plan_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backends/common/convolution_problem.h"
#include "catena/array/creation.h"
#include "catena/core/error.h"

namespace catena {
namespace {

TEST(PlanCache, KeepsThePlansUsedLast) {
  PlanCache<int> cache(2);
  EXPECT_EQ(cache.find("a"), nullptr);
  const auto a = cache.keep("a", std::make_shared<int>(1));
  cache.keep("b", std::make_shared<int>(2));
  EXPECT_EQ(*cache.find("a"), 1);  // b is the older one now
  cache.keep("c", std::make_shared<int>(3));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_EQ(cache.find("a"), a);
  EXPECT_EQ(*cache.find("c"), 3);
}

TEST(PlanCache, KeepsTheFirstPlanOfAKey) {
  PlanCache<int> cache(2);
  const auto first = cache.keep("a", std::make_shared<int>(1));
  EXPECT_EQ(cache.keep("a", std::make_shared<int>(2)), first);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(PlanCache, APlanOutlivesItsPlace) {
  PlanCache<int> cache(1);
  const auto a = cache.keep("a", std::make_shared<int>(1));
  cache.keep("b", std::make_shared<int>(2));
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_EQ(*a, 1);
}

TEST(PlanKey, SeparatesWordsAndNumbers) {
  PlanKey a, b;
  a << "x" << 1 << 23;
  b << "x" << 12 << 3;
  EXPECT_NE(a.text(), b.text());
  EXPECT_EQ(a.text(), "x 1 23 ");
  PlanKey low;
  low << INT64_MIN << true;
  EXPECT_EQ(low.text(), "-9223372036854775808 1 ");
  EXPECT_THROW(a << std::string(1000, 'x'), ValueError);
}

// Each field that decides how a convolution is computed is in its text.
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
  std::set<std::string> texts;
  for (const ConvolutionProblem& problem : all) {
    PlanKey key;
    problem.describe(key);
    texts.insert(std::string(key.text()));
  }
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
