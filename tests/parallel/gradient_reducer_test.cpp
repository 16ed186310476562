// How arenas are cut into buckets.
#include "catena/parallel/gradient_reducer.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"

namespace catena::parallel {
namespace {

// Parameters of these sizes in KiB, in order of declaration.
optimizers::ArenaSet arenas_of(const std::vector<int64_t>& kib,
                               const std::vector<Dtype>& dtypes = {}) {
  optimizers::ArenaSet::Named named;
  for (size_t i = 0; i < kib.size(); ++i) {
    const Dtype dtype = dtypes.empty() ? dtype::float32 : dtypes[i];
    named.emplace_back(message("/p", i), Parameter(zeros({kib[i] * 1024 / int64_t(itemsize(dtype))},
                                                         {dtype, cpu(0)})));
  }
  return optimizers::ArenaSet(named);
}

// "p3 p2 | p1 p0"
std::string shown(const optimizers::ArenaSet& set, const BucketOptions& options) {
  std::string text;
  for (const Bucket& b : make_buckets(set.arenas(), options)) {
    if (!text.empty()) text += "| ";
    for (size_t s = b.first; s < b.last; ++s)
      text += set.arenas()[b.arena].slots()[s].parameter.name().substr(1) + " ";
  }
  return text;
}

constexpr int64_t kKib = 1024;

TEST(Buckets, CloseAtTheirSizes) {
  const auto set = arenas_of({1, 1, 4, 4, 4, 4, 1, 1});
  EXPECT_EQ(shown(set, {2 * kKib, 8 * kKib, 2 * kKib}), "p7 p6 | p5 p4 | p3 p2 | p1 p0 ");
  EXPECT_EQ(shown(set, {1 * kKib, 100 * kKib, 1 * kKib}), "p7 | p6 p5 p4 p3 p2 p1 | p0 ");
  EXPECT_EQ(shown(set, {100 * kKib, 100 * kKib, 0}), "p7 p6 p5 p4 p3 p2 p1 p0 ");
}

TEST(Buckets, SmallModelsAreOneBucket) { EXPECT_EQ(shown(arenas_of({1, 1, 1}), {}), "p2 p1 p0 "); }

TEST(Buckets, LargeParametersStandAlone) {
  EXPECT_EQ(shown(arenas_of({16, 16}), {1 * kKib, 2 * kKib, 1 * kKib}), "p1 | p0 ");
}

TEST(Buckets, CoverEveryElementOnce) {
  const auto set = arenas_of({3, 1, 7, 2, 9, 1});
  int64_t at = 0;
  for (const Bucket& b : make_buckets(set.arenas(), {2 * kKib, 4 * kKib, 2 * kKib})) {
    EXPECT_EQ(b.begin, at);
    EXPECT_GT(b.end, b.begin);
    at = b.end;
  }
  EXPECT_EQ(at, set.arenas()[0].size());
}

TEST(Buckets, ArenasInterleaveInTheOrderOfBackward) {
  const auto set =
      arenas_of({4, 4, 4, 4}, {dtype::float32, dtype::float64, dtype::float32, dtype::float64});
  EXPECT_EQ(shown(set, {1 * kKib, 1 * kKib, 0}), "p3 | p2 | p1 | p0 ");
}

TEST(Buckets, RefuseNonsense) {
  EXPECT_THROW(make_buckets(arenas_of({1}).arenas(), {0, 1, 1}), ValueError);
}

}  // namespace
}  // namespace catena::parallel
