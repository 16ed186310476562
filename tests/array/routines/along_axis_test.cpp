// Positions and lines along axes, masks, diagonals, choices by conditions: numbers from NumPy.
#include "catena/array/along_axis.h"
#include "array/devices.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/sorting.h"

namespace catena {
namespace {

using namespace test;

class AlongAxis : public OnDevice {};

TEST_P(AlongAxis, TakeAndPutAlongAnAxis) {
  const Array a = numbers({3, 1, 2, 4, 6, 5}).reshape({2, 3});
  EXPECT_EQ(values(take_along_axis(a, ints({-1, 0}), none)), (V{5, 3}));
  put_along_axis(a, argmin(a, 1, true), 0, 1);
  EXPECT_EQ(values(a), (V{3, 0, 2, 0, 6, 5}));
  put_along_axis(a.T(), ints({5}), 1, none);
  EXPECT_EQ(values(a), (V{3, 0, 2, 0, 6, 1}));
  expect_contains(error_of<ShapeError>([&] { take_along_axis(a, ints({0}), 1); }),
                  {"take_along_axis", "(1,)", "(2, 3)"});
  expect_contains(error_of<DtypeError>([&] { take_along_axis(a, a, 1); }), {"take_along_axis"});
  EXPECT_THROW(take_along_axis(a, ints({3}).reshape({1, 1}), 1), IndexError);
}

TEST_P(AlongAxis, WritingByMasks) {
  const Array a = counting({5}), mask = a > 1;
  putmask(a, mask, -1);
  EXPECT_EQ(values(a), (V{0, 1, -1, -1, -1}));
  EXPECT_THROW(putmask(a, ones({4}, {Dtype::kBool, GetParam()}), 1), ShapeError);
  EXPECT_THROW(place(a, mask, zeros({0}, {GetParam()})), ValueError);
}

TEST_P(AlongAxis, Diagonals) {
  const Array tall = zeros({5, 2}, {Dtype::kInt8, GetParam()});
  fill_diagonal(tall, 5, true);
  EXPECT_EQ(values(tall), (V{5, 0, 0, 5, 0, 0, 5, 0, 0, 5}));
  EXPECT_THROW(fill_diagonal(zeros({2, 3, 2}, {GetParam()}), 1), ShapeError);
  EXPECT_THROW(fill_diagonal(zeros({2}, {GetParam()}), 1), ShapeError);
}

TEST_P(AlongAxis, PositionsOfTrianglesAndGrids) {
  const Device device = GetParam();
  const auto low = tril_indices(3, -1, {}, device), high = triu_indices(2, 0, 3, device);
  EXPECT_EQ(values(low[0]), (V{1, 2, 2}));
  EXPECT_EQ(values(low[1]), (V{0, 0, 1}));
  EXPECT_EQ(values(high[0]), (V{0, 0, 0, 1, 1}));
  EXPECT_EQ(values(high[1]), (V{0, 1, 2, 1, 2}));
  EXPECT_EQ(diag_indices(4, 3, device).size(), 3u);
  EXPECT_EQ(values(diag_indices(2, 2, device)[1]), (V{0, 1}));
  const Array grid = indices({2, 3}, device);
  EXPECT_EQ(grid.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(values(grid), (V{0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}));
  const auto mesh = ix_({ints({2, 0}), on(array({true, false, true}))});
  const Array a = counting({3, 3});
  EXPECT_EQ(values(a(mesh[0], mesh[1])), (V{6, 8, 0, 2}));
  EXPECT_THROW(ix_({a}), ShapeError);
}

TEST_P(AlongAxis, Select) {
  const Array a = counting({5});
  EXPECT_EQ(values(select({a < 2, a < 4}, {a, a * 10})), (V{0, 1, 20, 30, 0}));
  EXPECT_EQ(values(select({a < 1}, {a}, numbers({-1}))), (V{0, -1, -1, -1, -1}));
  EXPECT_EQ(select({a < 1}, {a.astype(Dtype::kInt8)}, 0).dtype(), Dtype::kInt8);
  EXPECT_EQ(select({a < 1}, {a.astype(Dtype::kInt8)}, 0.5).dtype(), Dtype::kFloat64);
  EXPECT_THROW(select({a < 1}, {a, a}), ValueError);
  EXPECT_THROW(select({a}, {a}), DtypeError);
}

TEST_P(AlongAxis, PiecesByConditions) {
  const Array x = numbers({-2, -1, 0, 1, 2});
  EXPECT_EQ(values(piecewise(x, {x < 0, x >= 0}, {-1, 1})), (V{-1, -1, 1, 1, 1}));
  const auto negated = [](const Array& part) { return -part; };
  EXPECT_EQ(values(piecewise(x, {x < 0}, {negated, 7})), (V{2, 1, 7, 7, 7}));
  // The last true condition counts; elements without one are 0.
  EXPECT_EQ(values(piecewise(x, {x > -2, x > 1}, {1, negated})), (V{0, 1, 1, 1, -2}));
  const auto never = [](const Array&) -> Array { throw ValueError("was called"); };
  EXPECT_EQ(values(piecewise(x, {x > 9, x < 9}, {never, 3})), V(5, 3));
  EXPECT_EQ(piecewise(ints({1, 2}), {ints({1, 2}) > 1}, {2.9}).dtype(), Dtype::kInt64);
  EXPECT_EQ(values(piecewise(x, {on(array({true}))}, {4})), V(5, 4));
  expect_contains(error_of<ValueError>([&] {
                    piecewise(x, {x < 0}, {1, 2, 3});
                  }),
                  {"piecewise: 3"});
  expect_contains(error_of<ShapeError>([&] {
                    piecewise(x, {numbers({1, 2}) > 0}, {1});
                  }),
                  {"piecewise: "});
  expect_contains(error_of<DtypeError>([&] { piecewise(x, {x}, {1}); }), {"piecewise: ", "bool"});
  expect_contains(error_of<ShapeError>([&] {
                    piecewise(x, {x < 0}, {[&](const Array&) { return numbers({1, 2, 3}); }});
                  }),
                  {"piecewise: ", "(3,)", "2 elements"});
}

TEST_P(AlongAxis, FunctionsOfLines) {
  const Array a = counting({2, 3});
  const auto ends = [](const Array& line) { return take(line, {0, -1}); };
  EXPECT_EQ(values(apply_along_axis(ends, 1, a)), (V{0, 2, 3, 5}));
  EXPECT_EQ(values(apply_along_axis(ends, 0, a)), (V{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(apply_along_axis([](const Array& line) { return sum(line); }, 0, a)),
            (V{3, 5, 7}));
  const auto square_of = [](const Array& line) { return outer(line, line); };
  EXPECT_EQ(apply_along_axis(square_of, 0, counting({2, 5})).shape(), (Shape{2, 2, 5}));
  EXPECT_THROW(apply_along_axis(ends, 2, a), IndexError);
  EXPECT_THROW(apply_along_axis(ends, 1, zeros({0, 3}, {GetParam()})), ValueError);
  EXPECT_EQ(values(trim_zeros(ints({0, 0, 1, 0, 2, 0}))), (V{1, 0, 2}));
  EXPECT_EQ(values(trim_zeros(ints({0, 1, 0}), TrimEnds::kFront)), (V{1, 0}));
  EXPECT_EQ(values(trim_zeros(ints({0, 1, 0}), TrimEnds::kBack)), (V{0, 1}));
  EXPECT_EQ(trim_zeros(ints({0, 0})).size(), 0);
}

CATENA_ON_DEVICES(AlongAxis);

}  // namespace
}  // namespace catena
