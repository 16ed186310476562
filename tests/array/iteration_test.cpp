// Loop plans: the collapsed nest visits the same elements as the plain one.
#include "array/iteration.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace catena {
namespace {

struct View {
  Shape shape;
  Strides strides;
};

LoopPlan plan_of(const std::vector<View>& views) {
  std::vector<LoopOperand> operands;
  for (const View& v : views) operands.push_back({&v.shape, &v.strides});
  return plan_loop(operands);
}

// Offset of operand 0 -> offsets of the others, by plain nested iteration.
std::map<int64_t, std::vector<int64_t>> reference(const std::vector<View>& views) {
  std::map<int64_t, std::vector<int64_t>> result;
  const Shape& extents = views[0].shape;
  const int64_t size = element_count(extents);
  for (int64_t i = 0; i < size; ++i) {
    std::vector<int64_t> offsets(views.size(), 0);
    int64_t rest = i;
    for (int d = extents.ndim() - 1; d >= 0; --d) {
      const int64_t position = rest % extents[size_t(d)];
      rest /= extents[size_t(d)];
      for (size_t k = 0; k < views.size(); ++k) {
        const int axis = d - (extents.ndim() - views[k].shape.ndim());
        if (axis < 0 || views[k].shape[size_t(axis)] == 1) continue;
        offsets[k] += position * views[k].strides[size_t(axis)];
      }
    }
    result[offsets[0]] = {offsets.begin() + 1, offsets.end()};
  }
  return result;
}

std::map<int64_t, std::vector<int64_t>> visited(const LoopPlan& plan) {
  std::map<int64_t, std::vector<int64_t>> result;
  const int64_t rows = plan.size / plan.inner();
  LoopCursor cursor(plan, 0);
  for (int64_t r = 0; r < rows; ++r, cursor.next_row()) {
    const LoopCursor fresh(plan, r);
    for (int64_t i = 0; i < plan.inner(); ++i) {
      std::vector<int64_t> offsets;
      for (int k = 0; k < plan.operands; ++k) {
        EXPECT_EQ(cursor.offset(k), fresh.offset(k));
        offsets.push_back(cursor.offset(k) + i * plan.inner_stride(k));
      }
      result[offsets[0]] = {offsets.begin() + 1, offsets.end()};
    }
  }
  return result;
}

struct PlanCase {
  const char* name;
  std::vector<View> views;
  int ndim;  // expected after collapsing
};

class LoopPlanTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(LoopPlanTest, VisitsEveryElementOnce) {
  const PlanCase& c = GetParam();
  const LoopPlan plan = plan_of(c.views);
  EXPECT_EQ(plan.ndim, c.ndim);
  EXPECT_EQ(plan.size, element_count(c.views[0].shape));
  EXPECT_EQ(visited(plan), reference(c.views));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, LoopPlanTest,
    ::testing::Values(
        PlanCase{"zero_d", {{{}, {}}, {{}, {}}}, 1},
        PlanCase{"contiguous", {{{2, 3, 4}, {48, 16, 4}}, {{2, 3, 4}, {48, 16, 4}}}, 1},
        PlanCase{"mixed_sizes", {{{2, 3, 4}, {12, 4, 1}}, {{2, 3, 4}, {96, 32, 8}}}, 1},
        PlanCase{"ones", {{{1, 5, 1}, {20, 4, 4}}, {{1, 5, 1}, {7, 4, 9}}}, 1},
        PlanCase{"row", {{{3, 4}, {16, 4}}, {{4}, {4}}}, 2},
        PlanCase{"column", {{{3, 4}, {16, 4}}, {{3, 1}, {4, 4}}}, 2},
        PlanCase{"scalar", {{{3, 4}, {16, 4}}, {{}, {}}}, 1},
        PlanCase{"stride_zero", {{{3, 4, 2}, {32, 8, 4}}, {{3, 4, 2}, {0, 8, 4}}}, 2},
        PlanCase{"both_transposed", {{{3, 4}, {4, 12}}, {{3, 4}, {4, 12}}}, 1},
        PlanCase{"one_transposed", {{{3, 4}, {16, 4}}, {{3, 4}, {4, 12}}}, 2},
        PlanCase{"sliced", {{{3, 4}, {16, 4}}, {{3, 4}, {64, 8}}}, 2},
        PlanCase{"reversed", {{{3, 4}, {16, 4}}, {{3, 4}, {16, -4}}}, 2},
        PlanCase{"permuted", {{{2, 3, 4}, {4, 8, 24}}, {{2, 3, 4}, {4, 8, 24}}, {{4}, {4}}}, 2}),
    [](const auto& info) { return info.param.name; });

TEST(LoopPlan, PutsTheFastAxisOfTheOutputInside) {
  const LoopPlan plan = plan_of({{{3, 4}, {4, 12}}, {{3, 4}, {16, 4}}});
  ASSERT_EQ(plan.ndim, 2);
  EXPECT_EQ(plan.inner(), 3);
  EXPECT_EQ(plan.inner_stride(0), 4);
  EXPECT_EQ(plan.inner_stride(1), 16);
}

TEST(LoopPlan, RefusesOperandsThatDoNotBroadcast) {
  EXPECT_THROW(plan_of({{{3, 4}, {16, 4}}, {{3}, {4}}}), ShapeError);
  EXPECT_THROW(plan_of({{{4}, {4}}, {{1, 4}, {16, 4}}}), ShapeError);
}

}  // namespace
}  // namespace catena
