#include "catena/parallel/pipeline/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "catena/core/error.h"
#include "error_text.h"

namespace catena::parallel::pipeline {
namespace {

TEST(Balance, EqualUnits) {
  const Balance result = balance(std::vector<double>(16, 2), 4);
  EXPECT_EQ(result.first, (std::vector<int>{0, 4, 8, 12, 16}));
  EXPECT_EQ(result.costs, (std::vector<double>(4, 8)));
  EXPECT_EQ(result.largest, 8);
  EXPECT_EQ(result.ideal, 8);
  EXPECT_EQ(result.text,
            "16 units in 4 stages, the largest at 8, 1 of the ideal 8\n"
            "  stage 0: units 0 to 3, 8\n  stage 1: units 4 to 7, 8\n"
            "  stage 2: units 8 to 11, 8\n  stage 3: units 12 to 15, 8\n"
            "  all stages cost the same\n");
}

TEST(Balance, OneLargeUnitIsTheLimit) {
  const Balance result = balance({1, 1, 9, 1, 1, 1}, 3);
  EXPECT_EQ(result.first, (std::vector<int>{0, 2, 3, 6}));
  EXPECT_EQ(result.largest, 9);
  expect_contains(result.text, {"limited by stage 1, which is unit 2 alone: units are not cut"});
}

TEST(Balance, TextSaysWhatLimits) {
  expect_contains(balance({2, 2, 2}, 2).text,
                  {"the largest at 4, 1.333 of the ideal 3",
                   "units 1 to 2 cost 4 and other cuts have larger stages"});
  expect_contains(balance({2, 2}, 2, {.border_costs = {0.5}, .rank_of_stage = {}}).text,
                  {"its borders cost 0.5"});
}

// Of the cuts with the smallest largest stage the most even one.
TEST(Balance, OtherStagesAreEvenToo) {
  const Balance result = balance({6, 1, 1, 1, 1}, 3);
  EXPECT_EQ(result.largest, 6);
  EXPECT_EQ(result.first, (std::vector<int>{0, 1, 3, 5}));
}

TEST(Balance, BordersCostBothTheirStages) {
  // Cutting behind unit 1 would be even, but that border is dear.
  const BalanceOptions dear{.border_costs = {0.5, 5, 0.5}, .rank_of_stage = {}};
  const Balance result = balance({2, 2, 2, 2}, 2, dear);
  EXPECT_EQ(result.largest, 6.5);
  EXPECT_NE(result.first[1], 2);
  // Between stages of one rank nothing is sent.
  const Balance one =
      balance({2, 2, 2, 2}, 2, {.border_costs = {0.5, 5, 0.5}, .rank_of_stage = {0, 0}});
  EXPECT_EQ(one.first[1], 2);
  EXPECT_EQ(one.largest, 4);
}

// Every cut of a small model.
TEST(Balance, IsTheBestOfAllCuts) {
  std::mt19937 random(1);
  const auto up_to = [&](int n) { return std::uniform_int_distribution<int>(1, n)(random); };
  for (int round = 0; round < 300; ++round) {
    const int units = up_to(9), stages = std::min(units, up_to(5));
    std::vector<double> costs;
    BalanceOptions options;
    for (int i = 0; i < units; ++i) costs.push_back(up_to(20) - 1);
    if (round % 2)
      for (int i = 0; i + 1 < units; ++i) options.border_costs.push_back(up_to(6) - 1);
    if (round % 3 == 0)
      for (int i = 0; i < stages; ++i) options.rank_of_stage.push_back(up_to(2));
    const auto border = [&](int stage, int unit) {
      if (options.border_costs.empty()) return 0.0;
      if (!options.rank_of_stage.empty() &&
          options.rank_of_stage[size_t(stage)] == options.rank_of_stage[size_t(stage) + 1])
        return 0.0;
      return options.border_costs[size_t(unit) - 1];
    };
    double best = std::numeric_limits<double>::infinity();
    const std::function<void(int, int, double, double)> cut = [&](int stage, int begin,
                                                                  double before, double largest) {
      if (stage == stages - 1) {
        const double last = std::accumulate(costs.begin() + begin, costs.end(), before);
        best = std::min(best, std::max(largest, last));
        return;
      }
      double sum = before;
      for (int end = begin + 1; end <= units - (stages - 1 - stage); ++end) {
        sum += costs[size_t(end) - 1];
        cut(stage + 1, end, border(stage, end), std::max(largest, sum + border(stage, end)));
      }
    };
    cut(0, 0, 0, 0);
    const Balance result = balance(costs, stages, options);
    EXPECT_DOUBLE_EQ(result.largest, best);
    ASSERT_EQ(result.first.size(), size_t(stages) + 1);
    EXPECT_EQ(result.first.front(), 0);
    EXPECT_EQ(result.first.back(), units);
    for (int i = 0; i < stages; ++i)
      EXPECT_LT(result.first[size_t(i)], result.first[size_t(i) + 1]);
  }
}

TEST(Balance, RefusesWhatCannotBeCut) {
  const auto refusal = [](const std::vector<double>& costs, int stages,
                          const BalanceOptions& options = {}) {
    return error_of<ValueError>([&] { balance(costs, stages, options); });
  };
  expect_contains(refusal({1, 1}, 3), {"balance: 2 units for 3 stages", "fewer stages"});
  expect_contains(refusal({1, 1}, 0), {"0 stages"});
  expect_contains(refusal({1, -1}, 1), {"cost of unit 1 is -1"});
  expect_contains(refusal({1, 1}, 1, {.border_costs = {1, 2}, .rank_of_stage = {}}),
                  {"2 costs of borders; 2 units have 1"});
  expect_contains(refusal({1, 1}, 2, {.border_costs = {}, .rank_of_stage = {0}}),
                  {"rank_of_stage has 1 entries for 2 stages"});
}

}  // namespace
}  // namespace catena::parallel::pipeline
