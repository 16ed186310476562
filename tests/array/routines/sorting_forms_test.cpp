// The argument forms of sorting, distinct elements and quantiles: keys, axes, methods.
#include "array/devices.h"
#include "catena/array/math.h"
#include "catena/array/sorting.h"

namespace catena {
namespace {

using namespace test;

class SortingForms : public OnDevice {};

TEST_P(SortingForms, ListsOfQuantiles) {
  const Array a = numbers({4, 1, 3, 2});
  EXPECT_EQ(values(percentile(a, {0, 50, 100})), (V{1, 2.5, 4}));
  const Array q = numbers({0, 1, 0.5, 1}).reshape({2, 2});
  EXPECT_EQ(quantile(a.reshape({2, 2}), q, 0).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(values(quantile(a, q)), (V{1, 4, 2.5, 4}));
  expect_contains(error_of<ValueError>([&] { quantile(a, q * 2); }), {"quantile", "0 to 1", "2"});
}

TEST_P(SortingForms, UniqueSlicesOfNothing) {
  EXPECT_EQ(unique(zeros({0, 2}, {GetParam()}), {.axis = 0}).values.shape(), (Shape{0, 2}));
  EXPECT_EQ(unique(zeros({3, 0}, {GetParam()}), {.axis = 0}).values.shape()[1], 0);
  expect_contains(error_of<IndexError>([&] {
                    unique(ints({1, 2}), {.axis = 2});
                  }),
                  {"unique", "2"});
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
