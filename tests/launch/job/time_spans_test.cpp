#include "job/time_spans.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

void PrintTo(const TimeSpan& span, std::ostream* out) {
  *out << "[" << span.begin << ", " << span.end << ")";
}

TEST(TimeSpans, AreUnited) {
  EXPECT_EQ(unite({}), TimeSpans());
  EXPECT_EQ(unite({{5, 5}, {7, 6}}), TimeSpans()) << "empty";
  EXPECT_EQ(unite({{8, 9}, {1, 4}, {2, 3}, {4, 6}}), (TimeSpans{{1, 6}, {8, 9}}));
}

TEST(TimeSpans, AreSubtracted) {
  const TimeSpans from = {{0, 10}, {20, 30}};
  EXPECT_EQ(subtract(from, {}), from);
  EXPECT_EQ(subtract(from, {{0, 30}}), TimeSpans());
  EXPECT_EQ(subtract(from, {{2, 3}, {5, 22}, {29, 40}}), (TimeSpans{{0, 2}, {3, 5}, {22, 29}}));
  EXPECT_EQ(subtract({{0, 4}, {6, 9}}, {{3, 7}}), (TimeSpans{{0, 3}, {7, 9}})) << "one cuts two";
}

TEST(TimeSpans, HaveALength) {
  const TimeSpans spans = {{0, 10}, {20, 30}, {40, 50}};
  EXPECT_EQ(length_within(spans, {0, 100}), 30);
  EXPECT_EQ(length_within(spans, {5, 25}), 10);
  EXPECT_EQ(length_within(spans, {22, 24}), 2);
  EXPECT_EQ(length_within(spans, {10, 20}), 0);
}

}  // namespace
}  // namespace catena::launch
