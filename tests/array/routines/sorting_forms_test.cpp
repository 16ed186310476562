// The argument forms of sorting, distinct elements and quantiles: keys, axes, methods.
#include <cmath>

#include "array/devices.h"
#include "catena/array/math.h"
#include "catena/array/sorting.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;
using ::error_of;

class SortingForms : public OnDevice {};

TEST_P(SortingForms, QuantileMethods) {
  const Array a = numbers({4, 1, 3, 2});  // position of 0.5: 1.5, of 0.4: 1.2
  using M = QuantileMethod;
  EXPECT_EQ(quantile(a, 0.5).item<double>(), 2.5);
  EXPECT_EQ(quantile(a, 0.5, {}, M::kLower).item<double>(), 2);
  EXPECT_EQ(quantile(a, 0.5, {}, M::kHigher).item<double>(), 3);
  EXPECT_EQ(quantile(a, 0.5, {}, M::kNearest).item<double>(), 3);  // 2 is the even position
  EXPECT_EQ(quantile(a, 0.4, {}, M::kNearest).item<double>(), 2);
  EXPECT_EQ(quantile(a, 0.4, {}, M::kMidpoint).item<double>(), 2.5);
  EXPECT_EQ(percentile(a, 100, {}, M::kMidpoint).item<double>(), 4);
  const Array infinite = numbers({1, INFINITY});
  EXPECT_EQ(quantile(infinite, 0.3, {}, M::kLower).item<double>(), 1);
  EXPECT_EQ(values(percentile(a, {0, 50, 100})), (V{1, 2.5, 4}));
  const Array q = numbers({0, 1, 0.5, 1}).reshape({2, 2});
  EXPECT_EQ(quantile(a.reshape({2, 2}), q, 0).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(values(quantile(a, q)), (V{1, 4, 2.5, 4}));
  expect_contains(error_of<ValueError>([&] { quantile(a, q * 2); }), {"quantile", "0 to 1", "2"});
}

TEST_P(SortingForms, UniqueSlices) {
  const Array a = ints({1, 2, 0, 5, 1, 2, 0, 4}).reshape({4, 2});
  const Unique rows =
      unique(a, {.return_index = true, .return_inverse = true, .return_counts = true, .axis = 0});
  EXPECT_EQ(values(rows.values), (V{0, 4, 0, 5, 1, 2}));
  EXPECT_EQ(rows.values.shape(), (Shape{3, 2}));
  EXPECT_EQ(values(rows.index), (V{3, 1, 0}));
  EXPECT_EQ(values(rows.inverse), (V{2, 1, 2, 0}));
  EXPECT_EQ(values(rows.counts), (V{1, 1, 2}));
  EXPECT_EQ(values(unique(a.T(), {.axis = -1}).values), (V{0, 0, 1, 4, 5, 2}));
  EXPECT_EQ(unique(zeros({0, 2}, {GetParam()}), {.axis = 0}).values.shape(), (Shape{0, 2}));
  EXPECT_EQ(unique(zeros({3, 0}, {GetParam()}), {.axis = 0}).values.shape()[1], 0);
  expect_contains(error_of<IndexError>([&] { unique(a, {.axis = 2}); }), {"unique", "2"});
}

TEST_P(SortingForms, Lexsort) {
  const Array last = ints({1, 0, 1, 0}), first = ints({3, 4, 2, 4});
  EXPECT_EQ(values(lexsort({first, last})), (V{1, 3, 2, 0}));
  EXPECT_EQ(values(lexsort({first.reshape({2, 2}), last.reshape({2, 2})}, 0)), (V{1, 0, 0, 1}));
  EXPECT_THROW(lexsort({first, last(Slice(0, 2))}), ShapeError);
  EXPECT_THROW(lexsort(std::span<const Array>()), ValueError);
}

CATENA_ON_DEVICES(SortingForms);

}  // namespace
}  // namespace catena
