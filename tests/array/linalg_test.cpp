#include "catena/array/linalg.h"

#include <map>
#include <sstream>

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

// All sums written out: letters only, every extent from the operands.
Array slow_einsum(const std::string& inputs, const std::string& output,
                  const std::vector<Array>& operands) {
  std::map<char, int64_t> extent;
  std::vector<std::string> terms;
  std::istringstream parts(inputs);
  for (std::string term; std::getline(parts, term, ',');) terms.push_back(term);
  for (size_t k = 0; k < terms.size(); ++k) {
    for (size_t i = 0; i < terms[k].size(); ++i) {
      int64_t& e = extent.emplace(terms[k][i], 1).first->second;
      e = std::max(e, operands[k].shape()[i]);
    }
  }
  Shape shape;
  for (char c : output) shape.push_back(extent[c]);
  const Array result = zeros(shape, {Dtype::kFloat64, cpu()});
  std::map<char, int64_t> at;
  int64_t total = 1;
  for (const auto& [c, e] : extent) total *= e;
  auto element = [&](const Array& a, const std::string& names) {
    std::vector<Index> index;
    for (size_t i = 0; i < names.size(); ++i)
      index.emplace_back(a.shape()[i] == 1 ? 0 : at[names[i]]);
    return a.at(std::span<const Index>(index));
  };
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n;
    for (const auto& [c, e] : extent) {
      at[c] = rest % e;
      rest /= e;
    }
    double product = 1;
    for (size_t k = 0; k < terms.size(); ++k)
      product *= element(operands[k], terms[k]).item<double>();
    element(result, output) += product;
  }
  return result;
}

TEST_P(Linalg, EinsumAgreesWithLoops) {
  struct Case {
    const char *inputs, *output;
    std::vector<Shape> shapes;
  };
  const std::vector<Case> cases = {
      {"ij,jk", "ik", {{2, 3}, {3, 4}}},
      {"ij,jk", "ki", {{2, 3}, {3, 4}}},
      {"ij,kj", "", {{2, 3}, {4, 3}}},
      {"ij", "ji", {{2, 3}}},
      {"ii", "", {{3, 3}}},
      {"ii", "i", {{3, 3}}},
      {"iji", "ji", {{2, 3, 2}}},
      {"iijj", "ij", {{2, 2, 3, 3}}},
      {"ijk", "k", {{2, 3, 4}}},
      {"i,j", "ij", {{2}, {3}}},
      {"i,i", "i", {{3}, {3}}},
      {"i,i", "", {{3}, {3}}},
      {"bij,bjk", "bik", {{2, 3, 4}, {2, 4, 2}}},
      {"bij,bj", "ib", {{2, 3, 4}, {2, 4}}},
      {"bhqd,bhkd", "bhqk", {{2, 2, 3, 4}, {2, 2, 2, 4}}},
      {"ab,bc,cd", "ad", {{2, 3}, {3, 4}, {4, 2}}},
      {"ab,bc,cd", "db", {{2, 3}, {3, 4}, {4, 2}}},
      {"ij,jk,ik", "", {{2, 3}, {3, 4}, {2, 4}}},
      {"i,j,k", "kji", {{2}, {3}, {2}}},
      {"ij,j", "i", {{2, 1}, {3}}},  // extents of 1 broadcast
      {"ij,ij", "ij", {{1, 3}, {2, 3}}},
      {",ij", "ji", {{}, {2, 3}}},
      {"iij,j", "i", {{2, 2, 3}, {3}}},
  };
  int seed = 0;
  for (const Case& c : cases) {
    std::vector<Array> operands;
    std::vector<Array> local;
    for (const Shape& shape : c.shapes) {
      operands.push_back(
          floor(testing::random_array(shape, -4, 5, Dtype::kFloat64, cpu(), ++seed)));
      local.push_back(on(operands.back()));
    }
    const std::string text = std::string(c.inputs) + "->" + c.output;
    const Array expected = slow_einsum(c.inputs, c.output, operands);
    EXPECT_EQ(testing::difference(einsum(text, local).to_cpu(), expected), "") << text;
    for (Array& a : local) a = a.astype(Dtype::kInt32);
    EXPECT_EQ(testing::difference(einsum(text, local).to_cpu(), expected.astype(Dtype::kInt32)), "")
        << text;
  }
}

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
