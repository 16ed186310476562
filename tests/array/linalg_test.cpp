#include "catena/array/linalg.h"

#include "array/devices.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"

namespace catena {
namespace {

using namespace test;
constexpr double kInf = std::numeric_limits<double>::infinity();

class Linalg : public OnDevice {
 protected:
  void near(const Array& a, const V& expected) {
    const V got = values(a);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 1e-12 * (1 + std::abs(expected[i])));
  }
};

// Sums by every kind of subscripts are in the function oracle: functions have the same contraction.
TEST_P(Linalg, EinsumForms) {
  const Array a = counting({2, 3}), b = counting({3, 4});
  EXPECT_EQ(values(einsum("ij,jk", {a, b})), values(matmul(a, b)));
  EXPECT_EQ(einsum("ba", {a}).shape(), (Shape{3, 2}));  // implicit: alphabetical
  EXPECT_EQ(einsum(" i j -> j i ", {a}).shape(), (Shape{3, 2}));
  EXPECT_TRUE(einsum("ij->ji", {a}).shares_memory_with(a));
  EXPECT_TRUE(einsum("ii->i", {counting({3, 3})}).ndim() == 1);
  const Array x = counting({5, 2, 3}), y = counting({1, 3, 4});
  EXPECT_EQ(values(einsum("...ij,...jk->...ik", {x, y})), values(matmul(x, y)));
  EXPECT_EQ(values(einsum("...ij,...jk", {x, b})), values(matmul(x, b)));
  EXPECT_EQ(einsum("i...->...i", {x}).shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(values(einsum("ij->", {a})), (V{15}));
  EXPECT_EQ(einsum("...", {x}).shape(), x.shape());
  EXPECT_EQ(einsum("ij,jk", {a.astype(Dtype::kFloat32), b.astype(Dtype::kInt8)}).dtype(),
            Dtype::kFloat32);
  EXPECT_EQ(einsum("i->", {ints({1, 2}).astype(Dtype::kInt8)}).dtype(), Dtype::kInt8);
  const Array yes = greater(a, 2);
  EXPECT_EQ(values(einsum("ij->i", {yes})), (V{0, 1}));
  EXPECT_EQ(einsum("ij->i", {yes}).dtype(), Dtype::kBool);
  EXPECT_EQ(values(einsum("ij,jk->ik", {zeros({2, 0}, GetParam()), zeros({0, 2}, GetParam())})),
            (V{0, 0, 0, 0}));
}

TEST_P(Linalg, EinsumErrorsShowTheSubscripts) {
  const Array a = counting({2, 3});
  for (const char* text : {"i", "ijk", "ij,jk", "ij->k", "ij->ii", "i1", "...i...", "ij->...."}) {
    const std::string said = error_of<Error>([&] { einsum(text, {a}); });
    EXPECT_NE(said.find(std::string("einsum: '") + text + "': "), said.npos)
        << text << ": " << said;
  }
  EXPECT_THROW(einsum("ii", {a}), ValueError);
  EXPECT_THROW(einsum("ij,jk", {a, a}), ShapeError);
  EXPECT_THROW(einsum("i...->i", {a}), ValueError);
}

TEST_P(Linalg, Norms) {
  const Array x = arange(-4, 8, 1, GetParam()).reshape({3, 4});
  near(linalg::norm(x), {13.038404810405298});
  near(linalg::norm(x, "fro"), {13.038404810405298});
  near(linalg::norm(x, kInf), {22});
  near(linalg::norm(x, -kInf), {6});
  near(linalg::norm(x, 1), {11});
  near(linalg::norm(x, -1), {8});
  const Array v = numbers({1, 2, 3, 4});
  near(linalg::norm(v, kInf), {4});
  near(linalg::norm(v, -kInf), {1});
  near(linalg::norm(v, 0), {4});
  near(linalg::norm(v, 1), {10});
  near(linalg::norm(v, 2), {5.477225575051661});
  near(linalg::norm(v, 3), {4.641588833612778});
  near(linalg::norm(v, 0.5), {37.7765657052182});
  near(linalg::norm(x.reshape({3, 2, 2}), 1, {2, 0}), {9, 13});
  EXPECT_EQ(linalg::norm(x, {}, {1}, true).shape(), (Shape{3, 1}));
  EXPECT_EQ(linalg::norm(x, kInf, {0, 1}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(linalg::norm(x).dtype(), Dtype::kFloat64);
  // Squares beyond the range of float16.
  const Array half = full({4}, 300, {Dtype::kFloat16, GetParam()});
  EXPECT_EQ(linalg::norm(half).dtype(), Dtype::kFloat16);
  EXPECT_EQ(values(linalg::norm(half)), (V{600}));
  EXPECT_THROW(linalg::norm(x, 2), ValueError);
  EXPECT_THROW(linalg::norm(x, "nuc"), ValueError);
  EXPECT_THROW(linalg::norm(v, "fro"), ValueError);
  EXPECT_THROW(linalg::norm(x.reshape({3, 2, 2}), 1), ShapeError);
}

TEST_P(Linalg, ProductsWithOut) {
  const Array a = counting({2, 3}), b = counting({3, 2}), out = zeros({2, 2}, GetParam());
  EXPECT_TRUE(dot(a, b, out).same_body(out));
  EXPECT_EQ(values(out), (V{10, 13, 28, 40}));
  dot(a, b, out.T());
  EXPECT_EQ(values(out.T()), (V{10, 13, 28, 40}));
  const Array cube = counting({2, 3, 2}), wide = zeros({2, 2, 2}, GetParam());
  dot(a, cube.reshape({2, 3, 2}), wide);
  EXPECT_EQ(values(wide), values(dot(a, cube)));
  EXPECT_EQ(dot(a, cube).shape(), (Shape{2, 2, 2}));
  EXPECT_THROW(dot(a, b, zeros({2, 3}, GetParam())), ShapeError);
  EXPECT_EQ(dot(a, b, Out(Dtype::kFloat32)).dtype(), Dtype::kFloat32);
  EXPECT_EQ(values(outer(numbers({1, 2}), numbers({3, 4}), out)), (V{3, 4, 6, 8}));
  EXPECT_EQ(values(kron(numbers({1, 2}), on(array({{1., 1.}, {0., 1.}}, cpu())))),
            (V{1, 1, 2, 2, 0, 1, 0, 2}));
  EXPECT_EQ(trace(ints({1, 2, 3, 4}).reshape({2, 2}), 0, 0, 1, Out(Dtype::kFloat32)).dtype(),
            Dtype::kFloat32);
  const Array total = zeros({}, GetParam());
  trace(a, 1, 0, 1, total);
  EXPECT_EQ(values(total), (V{6}));
  EXPECT_EQ(values(a.dot(b)), values(dot(a, b)));
}

TEST(LinalgOnCpu, BatchesOfEmptyProductsAreZero) {
  const Array c = matmul(ones({3, 2, 0}), ones({1, 0, 4}));
  EXPECT_EQ(c.shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(c.to_vector<double>(), std::vector<double>(24, 0));
}

CATENA_ON_DEVICES(Linalg);

}  // namespace
}  // namespace catena
