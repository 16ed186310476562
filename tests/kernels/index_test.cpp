// The slots take and scatter_add with strict ids, and sums over what the target holds, in every
// dtype; positions are in tests/backends/cpu/copy_test.cpp, both on GPUs in
// tests/cuda/kernels_test.cpp.
#include "catena/kernels/index.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "catena/core/config.h"
#include "catena/testing.h"

namespace catena {
namespace {

// Ids of [-2, extent], so that some are outside.
struct Ids {
  std::vector<int64_t> values;
  Ids(int64_t count, int64_t extent) {
    for (int64_t j = 0; j < count; ++j) values.push_back(j * j % (extent + 3) - 2);
  }
  Array as(Dtype dtype) const { return array(values).astype(dtype); }
};
bool is_row(int64_t id, int64_t extent, const IdRule& rule) {
  return id >= 0 && id < extent && rule.ignored != id;
}
Array small_integers(const Shape& shape, Dtype dtype, uint64_t seed) {
  return testing::random_array(shape, 0, 3, Dtype::kInt32, cpu(), seed).astype(dtype);
}
std::vector<double> numbers(const Array& a) {
  return a.astype(Dtype::kFloat64).to_vector<double>();
}
std::vector<Dtype> dtypes() {
  std::vector<Dtype> all;
  for (int d = 0; d < kDtypeCount; ++d) all.push_back(static_cast<Dtype>(d));
  return all;
}

TEST(StrictIds, TakeZerosForTheIgnoredIdAndNanForOthersOutside) {
  for (const Dtype dtype : dtypes()) {
    for (const int64_t inner : {1, 5}) {
      for (const IdRule& rule : {IdRule{true}, IdRule{true, 3}, IdRule{true, -1}}) {
        const Ids ids(40, 7);
        const Array source = small_integers({2, 7, inner}, dtype, 1);
        const Array y = Array::uninitialized({2, 40, inner}, dtype, cpu());
        for (const Dtype positions : {Dtype::kInt32, Dtype::kInt64}) {
          kernels::take(cpu(), {source, ids.as(positions), 0, y, rule});
          const std::vector<double> got = numbers(y), from = numbers(source);
          for (int64_t i = 0; i < y.size(); ++i) {
            const int64_t id = ids.values[size_t(i / inner % 40)];
            const double value = got[size_t(i)];
            if (is_row(id, 7, rule)) {
              ASSERT_EQ(value, from[size_t((i / (40 * inner) * 7 + id) * inner + i % inner)]);
            } else if (id == rule.ignored) {
              ASSERT_EQ(value, 0) << dtype;
            } else if (is_float(dtype)) {
              ASSERT_TRUE(std::isnan(value)) << dtype;
            }
          }
        }
      }
    }
  }
}

// By counting and by sorting; rows of one element, of few and of many.
TEST(StrictIds, ScatterAddLeavesOutAndOverwrites) {
  for (const Dtype dtype : dtypes()) {
    for (const int64_t inner : {1, 3, 520}) {
      for (const int64_t extent : {7, 490}) {
        for (const IdRule& rule : {IdRule{}, IdRule{true}, IdRule{true, 3}, IdRule{true, -1}}) {
          for (const bool accumulate : {false, true}) {
            SCOPED_TRACE(message(dtype, ", ", extent, " rows of ", inner));
            const Ids ids(60, 7);
            const Array target = small_integers({2, extent, inner}, dtype, 1);
            const Array values = small_integers({2, 60, inner}, dtype, 2);
            std::vector<double> expected = numbers(target);
            const std::vector<double> added = numbers(values);
            if (!accumulate) std::fill(expected.begin(), expected.end(), 0);
            for (int64_t i = 0; i < values.size(); ++i) {
              int64_t id = ids.values[size_t(i / inner % 60)];
              if (rule.strict && !is_row(id, extent, rule)) continue;
              if (!rule.strict) id = (id + extent) % extent;
              double& sum = expected[size_t((i / (60 * inner) * extent + id) * inner + i % inner)];
              sum += added[size_t(i)];
              if (dtype == Dtype::kBool) sum = sum > 0;
            }
            kernels::scatter_add(cpu(), {target, ids.as(Dtype::kInt32), values, accumulate, rule});
            ASSERT_EQ(numbers(target), expected);
          }
        }
      }
    }
  }
}

TEST(StrictIds, NoPositionsAndNoRows) {
  const Array target = ones({1, 3, 2}), none = Array::uninitialized({0}, Dtype::kInt32, cpu());
  const Array nothing = Array::uninitialized({1, 0, 2}, Dtype::kFloat64, cpu());
  kernels::scatter_add(cpu(), {target, none, nothing});
  EXPECT_EQ(numbers(target), std::vector<double>(6, 1));
  kernels::scatter_add(cpu(), {target, none, nothing, false, {true}});
  EXPECT_EQ(numbers(target), std::vector<double>(6, 0));
  const Array id = zeros({4}, Dtype::kInt32), values = ones({1, 4, 2});
  kernels::scatter_add(cpu(), {nothing, id, values, false, {true}});
  const Array y = Array::uninitialized({1, 4, 2}, Dtype::kFloat64, cpu());
  kernels::take(cpu(), {nothing, id, 0, y, {true}});
  for (const double v : numbers(y)) EXPECT_TRUE(std::isnan(v));
}

// The sum of many equal positions is not rounded at each addition, and not at all in float32.
TEST(ScatterAdd, SumsOf16BitsAreRoundedOnce) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16})
    for (const Dtype to : {dtype, Dtype::kFloat32})
      for (const int64_t inner : {1, 20})
        for (const bool accumulate : {false, true}) {
          const Array target = ones({1, 3, inner}, to), id = full({10000}, 2, Dtype::kInt32);
          const Array values = full({1, 10000, inner}, 0.75, dtype);
          kernels::scatter_add(cpu(), {target, id, values, accumulate});
          const double expected = accumulate ? 7501 : 7500, other = accumulate ? 1 : 0;
          const std::vector<double> got = numbers(target);
          const double rounded = numbers(full({1}, expected, to))[0];
          for (int64_t i = 0; i < target.size(); ++i)
            EXPECT_EQ(got[size_t(i)], i / inner == 2 ? rounded : other) << dtype << ' ' << to;
        }
}

TEST(ScatterAdd, OtherDtypesDoNotMix) {
  const Array id = zeros({2}, Dtype::kInt32), values = ones({1, 2, 4}, Dtype::kBFloat16);
  for (const Dtype to : {Dtype::kFloat64, Dtype::kFloat16, Dtype::kInt32})
    EXPECT_THROW(kernels::scatter_add(cpu(), {zeros({1, 3, 4}, to), id, values}), DtypeError);
  EXPECT_THROW(kernels::scatter_add(cpu(), {zeros({1, 3, 4}, Dtype::kBFloat16), id,
                                            ones({1, 2, 4}, Dtype::kFloat32)}),
               DtypeError);
}

// Threads share the places; where half of the values go to one of them, the columns.
TEST(ScatterAdd, ThreadsGiveTheSameSums) {
  const int before = cpu_threads();
  constexpr int64_t kExtent = 40000, kCount = 30000, kOuter = 2;
  for (const bool skewed : {false, true})
    for (const int64_t inner : {1, 24})
      for (const bool accumulate : {false, true}) {
        std::vector<int32_t> ids;
        for (int64_t j = 0; j < kCount; ++j)
          ids.push_back(int32_t(skewed && j % 2 ? 7 : j * j % (kExtent - 1000)));
        const Array values = small_integers({kOuter, kCount, inner}, Dtype::kFloat32, 3);
        std::vector<double> expected(size_t(kOuter * kExtent * inner), accumulate ? 1 : 0);
        const std::vector<double> added = numbers(values);
        for (int64_t i = 0; i < values.size(); ++i) {
          const int64_t slice = i / inner, place = ids[size_t(slice % kCount)];
          expected[size_t((slice / kCount * kExtent + place) * inner + i % inner)] +=
              added[size_t(i)];
        }
        for (const int threads : {1, 3, 8}) {
          set_cpu_threads(threads);
          const Array target = ones({kOuter, kExtent, inner}, Dtype::kFloat32);
          kernels::scatter_add(cpu(), {target, array(ids), values, accumulate, {true, {}}});
          EXPECT_TRUE(numbers(target) == expected)
              << threads << " threads, " << inner << " columns, skewed " << skewed;
        }
      }
  set_cpu_threads(before);
}

}  // namespace
}  // namespace catena
