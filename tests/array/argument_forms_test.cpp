// Argument forms of routines besides reductions: out, lists in place of numbers and numbers in
// place of arrays, methods, weights.
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "array/devices.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;
using ::error_of;

class ArgumentForms : public OnDevice {};

TEST_P(ArgumentForms, OutOfScansSortsAndJoins) {
  const Array a = numbers({3, 1, 2}), out = zeros({3}, {Dtype::kFloat32, GetParam()});
  EXPECT_TRUE(cumsum(a, 0, {}, out).same_body(out));
  EXPECT_EQ(values(out), (V{3, 4, 6}));
  cumprod(a, {}, {}, out);
  EXPECT_EQ(values(out), (V{3, 3, 6}));
  sort(a, -1, out);
  EXPECT_EQ(values(out), (V{1, 2, 3}));
  sort(a, -1, a);  // in place
  EXPECT_EQ(values(a), (V{1, 2, 3}));
  const Array long_ = zeros({6}, {GetParam()}), strided = long_(Slice(none, none, 2));
  concatenate({a(Slice(0, 2)), a(Slice(2, 3))}, 0, strided);
  EXPECT_EQ(values(long_), (V{1, 0, 2, 0, 3, 0}));
  const Array table = zeros({3, 2}, {GetParam()});
  stack({a, a * 10}, 1, table);
  EXPECT_EQ(values(table), (V{1, 10, 2, 20, 3, 30}));
  expect_contains(error_of<ShapeError>([&] { cumsum(a, 0, {}, table); }),
                  {"cumsum", "(3, 2)", "(3,)"});
  expect_contains(error_of<ShapeError>([&] {
                    concatenate({a, a}, 0, out);
                  }),
                  {"concatenate", "(3,)", "(6,)"});
}

// One that computes in its own dtype takes an array alone.
TEST_P(ArgumentForms, OutIsAnArray) {
  const Array a = numbers({3, 1, 2}), mask = a > 1;
  const std::vector<std::pair<const char*, std::function<void(const Out&)>>> calls = {
      {"cumsum", [&](const Out& out) { cumsum(a, 0, {}, out); }},
      {"cumprod", [&](const Out& out) { cumprod(a, 0, {}, out); }},
      {"sort", [&](const Out& out) { sort(a, -1, out); }},
      {"take",
       [&](const Out& out) {
         take(a, {0, 1, 2}, 0, OutOfRange::kRaise, out);
       }},
      {"take", [&](const Out& out) { take(a, 1, 0, OutOfRange::kRaise, out); }},
      {"concatenate", [&](const Out& out) { concatenate({a}, 0, out); }},
      {"stack", [&](const Out& out) { stack({a}, 0, out); }},
  };
  for (const auto& [name, call] : calls) {
    expect_contains(error_of<ValueError>([&] { call(Dtype::kFloat32); }), {name, "astype"});
    expect_contains(error_of<ValueError>([&] { call(Out(a.copy(), mask)); }), {name, "where"});
  }
}

TEST_P(ArgumentForms, ConcatenateWithoutAnAxis) {
  const Array a = counting({2, 2}), b = on(scalar_array(7.0));
  EXPECT_EQ(values(concatenate({a, b, a(0)}, none)), (V{0, 1, 2, 3, 7, 0, 1}));
}

TEST_P(ArgumentForms, HistogramWeightsAndDensity) {
  const Array a = numbers({0, 0.5, 1, 1.5, 4, NAN, -1}), w = numbers({1, 2, 3, 4, 5, 6, 7});
  const auto [sums, edges] = histogram(a(Slice(0, 5)), 4, {}, {.weights = w(Slice(0, 5))});
  EXPECT_EQ(values(sums), (V{3, 7, 0, 5}));
  EXPECT_EQ(values(edges), (V{0, 1, 2, 3, 4}));
  // Outside of the range and NaN count nowhere.
  EXPECT_EQ(values(histogram(a, 2, {{0, 2}}, {.weights = w}).first), (V{3, 7}));
  EXPECT_EQ(values(histogram(a, 2, {{0, 2}}, {.density = true}).first), (V{0.5, 0.5}));
  const Array uneven = numbers({0, 1, 4});
  EXPECT_EQ(values(histogram(a, uneven, {.weights = w, .density = true}).first), (V{0.2, 0.8 / 3}));
  EXPECT_EQ(histogram(a, uneven, {.weights = w.astype(Dtype::kInt32)}).first.dtype(),
            Dtype::kInt32);
  expect_contains(error_of<ShapeError>([&] { histogram(a, uneven, {.weights = uneven}); }),
                  {"histogram", "(3,)", "(7,)"});
}

TEST_P(ArgumentForms, QuantileMethods) {
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

TEST_P(ArgumentForms, UniqueSlices) {
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

TEST_P(ArgumentForms, Lexsort) {
  const Array last = ints({1, 0, 1, 0}), first = ints({3, 4, 2, 4});
  EXPECT_EQ(values(lexsort({first, last})), (V{1, 3, 2, 0}));
  EXPECT_EQ(values(lexsort({first.reshape({2, 2}), last.reshape({2, 2})}, 0)), (V{1, 0, 0, 1}));
  EXPECT_THROW(lexsort({first, last(Slice(0, 2))}), ShapeError);
  EXPECT_THROW(lexsort(std::span<const Array>()), ValueError);
}

TEST_P(ArgumentForms, NumbersInPlaceOfArrays) {
  const Array a = ints({1, 4, 9});
  EXPECT_EQ(values(diff(a, 1, -1, 0)), (V{1, 3, 5}));
  EXPECT_EQ(values(diff(a, 1, 0, {}, 20)), (V{3, 5, 11}));
  EXPECT_EQ(diff(a, 1, -1, 0).dtype(), Dtype::kInt64);
  EXPECT_EQ(values(diff(a, 1, -1, 0.5)), (V{0.5, 3, 5}));
  EXPECT_EQ(values(diff(a, 1, -1, ints({0, 0}), a)), (V{0, 1, 3, 5, -8, 3, 5}));
  put(a, ints({0, 2}), 7);
  EXPECT_EQ(values(a), (V{7, 4, 7}));
  scatter_add(a, ints({1, 1}), 3);
  EXPECT_EQ(values(a), (V{7, 10, 7}));
  EXPECT_EQ(values(repeat(a, ints({2, 0, 1}))), (V{7, 7, 7}));
  EXPECT_EQ(values(repeat(a, ints({2}))), (V{7, 7, 10, 10, 7, 7}));
  EXPECT_THROW(repeat(a, numbers({1, 2, 3})), DtypeError);
  EXPECT_EQ(values(delete_at(a, 1)), (V{7, 7}));
  EXPECT_EQ(values(delete_at(a, {})), (V{7, 10, 7}));
  EXPECT_EQ(values(delete_at(counting({2, 2}), -1, 1)), (V{0, 2}));
  EXPECT_EQ(values(delete_at(counting({2, 2}), {0, 3})), (V{1, 2}));
}

TEST_P(ArgumentForms, ListsOfAxes) {
  const Array a = counting({2, 3, 4});
  EXPECT_EQ(expand_dims(a, {0, 2}).shape(), (Shape{1, 2, 1, 3, 4}));
  EXPECT_EQ(expand_dims(a, {-1, 0}).shape(), (Shape{1, 2, 3, 4, 1}));
  EXPECT_EQ(expand_dims(a, 1).shape(), (Shape{2, 1, 3, 4}));
  EXPECT_EQ(expand_dims(a, {}).shape(), a.shape());
  EXPECT_THROW(expand_dims(a, {0, 0}), ValueError);
  EXPECT_EQ(moveaxis(a, {0, 1}, {-1, 0}).shape(), (Shape{3, 4, 2}));
  EXPECT_EQ(moveaxis(a, {2}, {0}).shape(), (Shape{4, 2, 3}));
  expect_contains(error_of<ValueError>([&] { moveaxis(a, {0, 1}, {2, 1, 0}); }), {"moveaxis"});
  EXPECT_EQ(rot90(a, 1, {1, 2}).shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(values(rot90(counting({1, 2, 2}), 1, {1, 2})), (V{1, 3, 0, 2}));
  EXPECT_EQ(values(rot90(counting({1, 2, 2}), 1, {2, 1})), (V{2, 0, 3, 1}));
  EXPECT_EQ(values(rot90(counting({1, 2, 2}), -1, {1, 2})), (V{2, 0, 3, 1}));
  EXPECT_THROW(rot90(a, 1, {1, -2}), ValueError);
}

TEST_P(ArgumentForms, Insert) {
  const Array a = ints({1, 2, 3});
  EXPECT_EQ(values(insert(a, 1, 9)), (V{1, 9, 2, 3}));
  EXPECT_EQ(values(insert(a, -1, ints({7, 8}))), (V{1, 2, 7, 8, 3}));
  EXPECT_EQ(values(insert(a, 3, 9)), (V{1, 2, 3, 9}));
  EXPECT_EQ(values(insert(a, {2, 0, 2}, ints({7, 8, 9}))), (V{8, 1, 2, 7, 9, 3}));
  const Array m = counting({2, 2});
  EXPECT_EQ(values(insert(m, 1, numbers({8, 9}), 1)), (V{0, 8, 1, 2, 9, 3}));
  EXPECT_EQ(values(insert(m, 0, 5, 0)), (V{5, 5, 0, 1, 2, 3}));
  EXPECT_EQ(values(insert(m, {0, 1}, numbers({8, 9}), 1)), (V{8, 0, 9, 1, 8, 2, 9, 3}));
  EXPECT_EQ(insert(a, 0, 2.9)(0).item<int64_t>(), 2);  // in the dtype of the array
  expect_contains(error_of<IndexError>([&] { insert(a, 4, 0); }), {"insert", "4", "extent 3"});
  EXPECT_THROW(insert(m, {0, 1}, numbers({1, 2, 3}), 1), ShapeError);
}

TEST_P(ArgumentForms, Block) {
  const Array one = ones({2, 2}, {GetParam()}), column = zeros({2, 1}, {GetParam()});
  EXPECT_EQ(values(block({{one, column}, {numbers({5, 6}), on(scalar_array(7.0))}})),
            (V{1, 1, 0, 1, 1, 0, 5, 6, 7}));
  EXPECT_EQ(values(block({{numbers({1, 2}), numbers({3})}})), (V{1, 2, 3}));
  EXPECT_THROW(block({}), ValueError);
  EXPECT_THROW(block({{one}, {column}}), ShapeError);
}

CATENA_ON_DEVICES(ArgumentForms);

}  // namespace
}  // namespace catena
