#include "catena/array/manipulation.h"

#include <cstdint>
#include <limits>

#include "array/devices.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"

namespace catena {
namespace {

using namespace test;

class Manipulation : public OnDevice {};

TEST_P(Manipulation, PadAsNumPy) {
  const Array a = ints({1, 2, 3});
  EXPECT_EQ(values(pad(a, {{4, 5}}, PadMode::kEdge)), (V{1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(values(pad(a, {{4, 5}}, PadMode::kReflect)), (V{1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(values(pad(a, {{4, 5}}, PadMode::kSymmetric)), (V{3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2}));
  EXPECT_EQ(values(pad(a, {{4, 5}}, PadMode::kWrap)), (V{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}));
  EXPECT_EQ(values(pad(counting({2, 2}), {{1, 0}, {0, 2}}, PadMode::kConstant, 9)),
            (V{9, 9, 9, 9, 0, 1, 9, 9, 2, 3, 9, 9}));
  EXPECT_EQ(values(pad(counting({2, 3}), {{1, 1}, {2, 1}}, PadMode::kReflect)),
            (V{5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(pad(a, 2).shape(), (Shape{7}));
  EXPECT_EQ(pad(a, 2).dtype(), Dtype::kInt64);
  EXPECT_FALSE(pad(a, 0, PadMode::kEdge).shares_memory_with(a));
  EXPECT_EQ(pad(zeros({0, 2}, GetParam()), {{1, 0}, {0, 0}}).shape(), (Shape{1, 2}));
  EXPECT_THROW(pad(zeros({0}, GetParam()), 1, PadMode::kWrap), ValueError);
  EXPECT_THROW(pad(a, {{1, -1}}), ValueError);
  EXPECT_THROW(pad(a, {{1, 1}, {1, 1}}), ShapeError);
}

TEST_P(Manipulation, JoinAndSplit) {
  const Array a = counting({3}), m = counting({3, 2});
  EXPECT_EQ(values(column_stack(std::vector{a, m})), (V{0, 0, 1, 1, 2, 3, 2, 4, 5}));
  EXPECT_THROW(column_stack(std::vector{counting({1, 1, 1})}), ShapeError);
  // Of two mistakes NumPy names the shapes.
  EXPECT_THROW(stack({counting({2}), counting({2, 1})}, 2), ShapeError);
  EXPECT_THROW(stack({counting({2}), counting({2})}, 2), IndexError);
  EXPECT_EQ(values(append(a, m)), (V{0, 1, 2, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(append(m, m, 1).shape(), (Shape{3, 4}));
  const Array cube = counting({2, 4, 6});
  EXPECT_EQ(vsplit(cube, 2)[1].shape(), (Shape{1, 4, 6}));
  EXPECT_EQ(hsplit(cube, 2)[1].shape(), (Shape{2, 2, 6}));
  EXPECT_EQ(dsplit(cube, Axes{1, 5})[1].shape(), (Shape{2, 4, 4}));
  EXPECT_EQ(values(hsplit(counting({4}), 2)[1]), (V{2, 3}));
  EXPECT_TRUE(dsplit(cube, 3)[2].shares_memory_with(cube));
  EXPECT_EQ(array_split(counting({5}), Axes{3, 2, -1}).size(), 4u);
  EXPECT_EQ(values(array_split(counting({5}), Axes{3, 2, -1})[2]), (V{2, 3}));
  EXPECT_THROW(vsplit(a, 3), ShapeError);
  EXPECT_THROW(dsplit(m, 1), ShapeError);
  EXPECT_THROW(hsplit(cube, 3), ShapeError);
}

TEST_P(Manipulation, SeveralArraysAtOnce) {
  const Array number = numbers({5}).reshape({}), row = counting({3}), matrix = counting({2, 3});
  const auto once = atleast_1d({number, row}), twice = atleast_2d({number, row, matrix}),
             thrice = atleast_3d(twice);
  ASSERT_EQ(once.size() + twice.size() + thrice.size(), 8u);
  EXPECT_EQ(once[0].shape(), (Shape{1}));
  EXPECT_TRUE(once[1].same_body(row));
  EXPECT_EQ(twice[0].shape(), (Shape{1, 1}));
  EXPECT_EQ(twice[1].shape(), (Shape{1, 3}));
  EXPECT_TRUE(twice[1].shares_memory_with(row));
  EXPECT_EQ(thrice[2].shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(atleast_3d({number, row})[1].shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(atleast_3d(zeros({0}, GetParam())).shape(), (Shape{1, 0, 1}));
  EXPECT_THROW(atleast_2d({row, Array()}), ValueError);
}

TEST_P(Manipulation, VectorsAndMatrices) {
  const Array a = counting({2, 3, 4});
  EXPECT_EQ(as_vec(a).shape(), (Shape{24}));
  EXPECT_EQ(as_mat(a).shape(), (Shape{2, 12}));
  EXPECT_TRUE(as_mat(a).shares_memory_with(a));
  EXPECT_EQ(values(as_vec(a.T())), values(a.T()));
  EXPECT_EQ(values(as_mat(a.T())), values(a.T()));
  const Array row = counting({4}), matrix = counting({2, 3}).T();
  EXPECT_TRUE(as_vec(row).same_body(row));
  EXPECT_TRUE(as_mat(matrix).same_body(matrix));
  EXPECT_EQ(as_mat(row).shape(), (Shape{4, 1}));
  EXPECT_EQ(as_mat(zeros({0, 3, 2}, GetParam())).shape(), (Shape{0, 6}));
  EXPECT_EQ(as_vec(scalar_array(1.0, GetParam())).shape(), (Shape{1}));
  EXPECT_THROW(as_mat(scalar_array(1.0, GetParam())), ShapeError);
  EXPECT_THROW(as_vec(Array()), ValueError);
}

TEST_P(Manipulation, RollRepeatResizeDelete) {
  const Array a = counting({2, 3});
  EXPECT_EQ(values(roll(a, Axes{1, 2, 1}, Axes{0, 1, 1})), (V{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values(roll(a, 2)), (V{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(values(roll(a, Axes{-1}, Axes{0, 1})), (V{4, 5, 3, 1, 2, 0}));
  EXPECT_FALSE(roll(a, Axes{3}, Axes{1}).shares_memory_with(a));
  EXPECT_EQ(values(repeat(a, std::vector<int64_t>{2, 0, 1}, 1)), (V{0, 0, 2, 3, 3, 5}));
  EXPECT_EQ(values(repeat(counting({2}), 2)), (V{0, 0, 1, 1}));
  EXPECT_THROW(repeat(a, std::vector<int64_t>{1, 2}, 1), ShapeError);
  EXPECT_THROW(repeat(a, std::vector<int64_t>{1, -2}, 0), ValueError);
  EXPECT_EQ(values(resize(counting({3}), {2, 4})), (V{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(resize(counting({3}), {0}).size(), 0);
  EXPECT_EQ(values(delete_at(a, {0, -1}, 1)), (V{1, 4}));
  EXPECT_THROW(delete_at(a, {3}, 1), IndexError);
}

TEST_P(Manipulation, BroadcastObject) {
  const Broadcast b{counting({3, 1}), counting({4})};
  EXPECT_EQ(b.shape(), (Shape{3, 4}));
  EXPECT_EQ(b.ndim(), 2);
  EXPECT_EQ(b.size(), 12);
  EXPECT_EQ(values(b.values()[0]), (V{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(b.values()[1].strides(), (Strides{0, 8}));
  expect_contains(error_of<ShapeError>([&] {
                    Broadcast{counting({3}), counting({4})};
                  }),
                  {"(3,) and (4,)"});
}

TEST_P(Manipulation, ConcatenateWithoutAnAxis) {
  const Array a = counting({2, 2}), b = on(scalar_array(7.0));
  EXPECT_EQ(values(concatenate({a, b, a(0)}, none)), (V{0, 1, 2, 3, 7, 0, 1}));
}

TEST_P(Manipulation, NumbersInPlaceOfArrays) {
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

TEST_P(Manipulation, ListsOfAxes) {
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

TEST_P(Manipulation, Insert) {
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

TEST_P(Manipulation, Block) {
  const Array one = ones({2, 2}, {GetParam()}), column = zeros({2, 1}, {GetParam()});
  EXPECT_EQ(values(block({{one, column}, {numbers({5, 6}), on(scalar_array(7.0))}})),
            (V{1, 1, 0, 1, 1, 0, 5, 6, 7}));
  EXPECT_EQ(values(block({{numbers({1, 2}), numbers({3})}})), (V{1, 2, 3}));
  EXPECT_THROW(block({}), ValueError);
  EXPECT_THROW(block({{one}, {column}}), ShapeError);
}

TEST(ManipulationOnCpu, TrianglesOfFarDiagonals) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Array a = ones({2, 3});
  EXPECT_EQ(tri(2, 3, kMost).shape(), (Shape{2, 3}));
  for (const int64_t far : {kMost, int64_t{3}, int64_t{100}}) {
    EXPECT_EQ(sum(tri(2, 3, far)).item<double>(), 6);
    EXPECT_EQ(sum(tril(a, far)).item<double>(), 6);
    EXPECT_EQ(sum(triu(a, far)).item<double>(), 0);
  }
  for (const int64_t far : {kLeast, int64_t{-2}, int64_t{-100}}) {
    EXPECT_EQ(sum(tri(2, 3, far)).item<double>(), 0);
    EXPECT_EQ(sum(tril(a, far)).item<double>(), 0);
    EXPECT_EQ(sum(triu(a, far)).item<double>(), 6);
  }
}

TEST(ManipulationOnCpu, RollaxisCountsNegativeStartsFromTheEnd) {
  const Array a = zeros({2, 3, 4});
  EXPECT_EQ(rollaxis(a, 0, -1).shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(rollaxis(a, 2, -3).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(rollaxis(a, 0, 3).shape(), (Shape{3, 4, 2}));
  EXPECT_THROW(rollaxis(a, 0, 4), IndexError);
}

CATENA_ON_DEVICES(Manipulation);

class Creation : public OnDevice {};

TEST_P(Creation, SpacedNumbers) {
  const Device d = GetParam();
  EXPECT_EQ(values(linspace(-3, 2, 4, true, {Dtype::kInt64, d})), (V{-3, -2, 0, 2}));
  const auto [a, step] = linspace_with_step(0, 1, 4, false, d);
  EXPECT_EQ(values(a), (V{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(step, 0.25);
  EXPECT_EQ(values(linspace(5, 9, 1, true, d)), (V{5}));
  EXPECT_EQ(linspace(0, 1, 0, true, d).size(), 0);
  EXPECT_THROW(linspace(0, 1, -1), ValueError);
  EXPECT_EQ(values(logspace(0, 2, 3, true, 10, d)), (V{1, 10, 100}));
  EXPECT_EQ(values(logspace(0, 3, 4, true, 2, d)), (V{1, 2, 4, 8}));
  const V g = values(geomspace(-1, -8, 4, true, d));
  EXPECT_EQ(g[0], -1);
  EXPECT_NEAR(g[1], -2, 1e-12);
  EXPECT_EQ(g[3], -8);
  EXPECT_THROW(geomspace(-1, 8), ValueError);
  EXPECT_THROW(geomspace(0, 8), ValueError);
  EXPECT_EQ(logspace(0, 1, 2, true, 10, {Dtype::kFloat32, d}).device(), d);
}

TEST_P(Creation, Triangles) {
  const Device d = GetParam();
  EXPECT_EQ(values(tri(3, 4, 1, d)), (V{1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(tri(2, {}, 0, {Dtype::kInt8, d}).dtype(), Dtype::kInt8);
  const Array a = counting({2, 3}, Dtype::kInt16) + 1;
  EXPECT_EQ(values(triu(a)), (V{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(values(tril(a, -1)), (V{0, 0, 0, 4, 0, 0}));
  EXPECT_EQ(tril(a).dtype(), Dtype::kInt16);
  EXPECT_EQ(values(tril(numbers({1, 2}))), (V{1, 0, 1, 2}));
  EXPECT_EQ(triu(counting({4, 2, 3})).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(values(diagflat(numbers({1, 2}).reshape({2, 1}), 1)), (V{0, 1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_THROW(tril(scalar_array(1)), ShapeError);
}

TEST_P(Creation, Meshgrid) {
  const std::vector axes = {numbers({1, 2, 3}), numbers({4, 5})};
  auto grid = meshgrid(axes);
  EXPECT_EQ(grid[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(values(grid[0]), (V{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(values(grid[1]), (V{4, 4, 4, 5, 5, 5}));
  grid = meshgrid(axes, MeshOrder::kIj);
  EXPECT_EQ(values(grid[1]), (V{4, 5, 4, 5, 4, 5}));
  grid = meshgrid(axes, MeshOrder::kXy, true);
  EXPECT_EQ(grid[0].shape(), (Shape{1, 3}));
  EXPECT_TRUE(grid[0].shares_memory_with(axes[0]));
  EXPECT_THROW(meshgrid(std::vector{counting({2, 2})}), ShapeError);
}

TEST_P(Creation, ArraysFromArrays) {
  const Array a = counting({2, 3});
  EXPECT_TRUE(asarray(a).same_body(a));
  EXPECT_TRUE(asanyarray(a).same_body(a));
  EXPECT_EQ(asanyarray(a.T(), Dtype::kInt8).dtype(), Dtype::kInt8);
  EXPECT_TRUE(a.contiguous().same_body(a));
  EXPECT_TRUE(a.T().contiguous().is_contiguous());
  EXPECT_FALSE(array(a).shares_memory_with(a));
  EXPECT_EQ(array(a, {Dtype::kInt32}, false, 4).shape(), (Shape{1, 1, 2, 3}));
  EXPECT_TRUE(array(a, {}, false, 3).shares_memory_with(a));
  EXPECT_EQ(asarray(a, Dtype::kFloat32).dtype(), Dtype::kFloat32);
  EXPECT_EQ(asarray(a, cpu(2)).device(), cpu(2));
  EXPECT_TRUE(ascontiguousarray(a).same_body(a));
  EXPECT_TRUE(ascontiguousarray(a.T()).is_contiguous());
  EXPECT_EQ(values(ascontiguousarray(a.T())), (V{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ascontiguousarray(scalar_array(2)).shape(), (Shape{1}));
  DeviceScope scope(cpu(1));
  EXPECT_EQ(copy(a).device(), cpu(1));
  EXPECT_EQ(values(copy(a.T())), values(a.T()));
}

CATENA_ON_DEVICES(Creation);

}  // namespace
}  // namespace catena
