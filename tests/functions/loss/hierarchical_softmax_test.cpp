// Binary trees, Huffman trees and BinaryHierarchicalSoftmax.
#include "catena/functions/loss/hierarchical_softmax.h"

#include <sstream>

#include "catena/serializers/npz.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"
#include "temp_folder.h"

namespace catena {
namespace {

using F::BinaryHierarchicalSoftmax;
using F::BinaryTree;

std::string text(const BinaryTree& tree) {
  std::ostringstream os;
  os << tree;
  return os.str();
}

TEST(BinaryTree, IsMadeOfNestedPairs) {
  const BinaryTree tree = {{1, 2}, 3};
  EXPECT_EQ(text(tree), "((1, 2), 3)");
  EXPECT_EQ(tree.leaf_count(), 3);
  EXPECT_EQ(tree.pre_order(), (std::vector<int32_t>{-1, -1, 1, 2, 3}));
  EXPECT_EQ(tree, BinaryTree::of({BinaryTree::of({1, 2}), 3}));
  EXPECT_EQ(tree, BinaryTree::from_pre_order({-1, -1, 1, 2, 3}));
  EXPECT_NE(tree, BinaryTree(3, BinaryTree(1, 2)));
  EXPECT_EQ(text(7), "7");
  EXPECT_EQ(text(BinaryTree(BinaryTree(0, 1), BinaryTree(2, BinaryTree(3, 4)))),
            "((0, 1), (2, (3, 4)))");
}

TEST(BinaryTree, RefusesNodesThatAreNotPairs) {
  EXPECT_EQ(error_of<ValueError>([] {
              BinaryTree::of({1, 2, 3});
            }),
            "BinaryTree: All internal nodes must have two child nodes, got one with 3");
  EXPECT_THROW(BinaryTree::of({}), ValueError);
  EXPECT_EQ(error_of<ValueError>([] { BinaryTree(-2); }),
            "BinaryTree: expected an id of at least 0, got -2");
  EXPECT_EQ(error_of<ValueError>([] {
              BinaryTree::from_pre_order({-1, 1});
            }),
            "BinaryTree: All internal nodes must have two child nodes, 1 are missing");
  EXPECT_THROW(BinaryTree::from_pre_order({1, 2}), ValueError);
  EXPECT_THROW(BinaryTree::from_pre_order({}), ValueError);
}

TEST(HuffmanTree, JoinsTheSmallestCounts) {
  const auto huffman = [](const std::map<int32_t, double>& counts) {
    return text(BinaryHierarchicalSoftmax::create_huffman_tree(counts));
  };
  EXPECT_EQ(huffman({{0, 8}, {1, 5}, {2, 6}, {3, 4}}), "((3, 1), (2, 0))");
  EXPECT_EQ(huffman({{4, 1}}), "4");
  EXPECT_EQ(huffman({{2, 1}, {5, 1}, {9, 1}}), "(9, (2, 5))");
  EXPECT_EQ(huffman({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), "((0, 1), (2, 3))");
  // Joined nodes are as old as the older child: before a leaf of the same count.
  EXPECT_EQ(huffman({{0, 1}, {1, 1}, {2, 2}}), "((0, 1), 2)");
  EXPECT_EQ(huffman({{0, 2}, {1, 1}, {2, 1}}), "(0, (1, 2))");
  EXPECT_EQ(error_of<ValueError>([&] { huffman({}); }), "create_huffman_tree: Empty vocabulary");
  EXPECT_THROW(huffman({{0, -1}}), ValueError);
  EXPECT_THROW(huffman({{-1, 1}}), ValueError);
}

// As deep as it has leaves.
TEST(HuffmanTree, MayBeDeep) {
  std::map<int32_t, double> counts;
  for (int32_t i = 0; i < 900; ++i) counts[i] = std::ldexp(1.0, i);
  const BinaryTree tree = BinaryHierarchicalSoftmax::create_huffman_tree(counts);
  EXPECT_EQ(tree.leaf_count(), 900);
  const BinaryHierarchicalSoftmax loss(2, tree);
  EXPECT_EQ(loss.paths.size(), 899 + 899 * 900 / 2);
}

class Hierarchy : public OnDevice {
 protected:
  // Ids with gaps: 1, 2, 5, 7, 8.
  static BinaryTree tree() { return {{7, {1, 5}}, {2, 8}}; }
  BinaryHierarchicalSoftmax layer(Dtype dtype = Dtype::kFloat64) const {
    const DeviceScope scope(device());
    return BinaryHierarchicalSoftmax(3, tree(), {.initialW = draw({4, 3}, -1, 1, 4, dtype)});
  }
  Array ids(const std::vector<int32_t>& values) const { return array(values).to(device()); }
};
CATENA_ON_DEVICES(Hierarchy);

TEST_P(Hierarchy, TakesAnyLayoutAndInt64) {
  const BinaryHierarchicalSoftmax loss = layer();
  const Array x = draw({6, 3}, -2, 2), t = ids({1, 2, 5, 7, 8, 5});
  const double expected = loss(x, t).data().item<double>();
  EXPECT_EQ(loss(x, t.astype(Dtype::kInt64)).data().item<double>(), expected);
  for (const Array& view : {padded(x), transposed_layout(x), reversed_layout(x)})
    EXPECT_NEAR(loss(view, t).data().item<double>(), loss(view.copy(), t).data().item<double>(),
                1e-10);
  EXPECT_EQ(loss.begins.data().to_cpu().to_vector<int32_t>(),
            (std::vector<int32_t>{0, 0, 3, 5, 5, 5, 8, 8, 10, 12}));
}

TEST_P(Hierarchy, ProbabilitiesOfTheLeavesAddUpToOne) {
  const BinaryHierarchicalSoftmax loss = layer(Dtype::kFloat32);
  const Array x = draw({1, 3}, -3, 3, 2, Dtype::kFloat32);
  double total = 0;
  for (const int32_t id : {1, 2, 5, 7, 8})
    total += std::exp(-loss(x, ids({id})).data().item<double>());
  EXPECT_NEAR(total, 1, 1e-5);
}

TEST_P(Hierarchy, HasTheGradientsOfBothOrders) {
  const BinaryHierarchicalSoftmax loss = layer();
  const Array t = ids({1, 8, 5, 1});
  expect_gradients([&](const Variable& x) { return loss(x, t); }, draw({4, 3}, -2, 2), "x");
  // Of W: by steps along each of its elements.
  const Array x = draw({4, 3}, -2, 2), g = loss.W.grad();
  loss.W.zero_grad();
  loss(x, t).backward();
  const auto shifted = [&](int64_t e, double by) {
    const Array number = loss.W.data()(e / 3, e % 3);
    number += by;
    const double value = loss(x, t).data().item<double>();
    number -= by;
    return value;
  };
  for (int64_t e = 0; e < 12; ++e)
    EXPECT_NEAR(g(e / 3, e % 3).item<double>(), (shifted(e, 1e-5) - shifted(e, -1e-5)) / 2e-5,
                1e-6);
}

TEST_P(Hierarchy, AddsToTheGradientInEveryDtype) {
  const Array x = draw({4, 3}, -2, 2), t = ids({1, 8, 5, 1});
  const BinaryHierarchicalSoftmax exact = layer();
  exact(x, t).backward();
  for (const auto& [dtype, error] :
       {std::pair{Dtype::kFloat32, 1e-5}, {Dtype::kFloat16, 1e-2}, {Dtype::kBFloat16, 6e-2}}) {
    const BinaryHierarchicalSoftmax loss = layer(dtype);
    for (const double times : {1.0, 2.0}) {
      loss(x.astype(dtype), t).backward();
      EXPECT_NO_THROW(assert_allclose(loss.W.grad(), exact.W.grad() * times, error, error))
          << dtype;
    }
  }
}

TEST_P(Hierarchy, StartsUniformAndMovesItsTables) {
  const DeviceScope scope(device());
  BinaryHierarchicalSoftmax loss(400, tree());
  EXPECT_EQ(loss.W.shape(), (Shape{4, 400}));
  const std::vector<double> W = loss.W.data().to_cpu().to_vector<double>();
  double square = 0;
  for (const double w : W) {
    EXPECT_TRUE(w >= -1 && w < 1);
    square += w * w / double(W.size());
  }
  EXPECT_NEAR(square, 1.0 / 3, 0.04);
  EXPECT_EQ(loss.parameter_names(), (std::vector<std::string>{"W"}));
  EXPECT_EQ(loss.persistent_names(),
            (std::vector<std::string>{"tree_digest", "begins", "paths", "codes"}));
  BinaryHierarchicalSoftmax copy = loss;
  copy.to(cpu(3));
  EXPECT_EQ(copy.paths.device(), cpu(3));
}

// Trees of the same ids, whose tables have the same shapes.
TEST_P(Hierarchy, RefusesFilesAndCopiesOfAnotherTree) {
  const DeviceScope scope(device());
  const BinaryTree saved{{1, 2}, {3, 4}}, other{{1, 3}, {2, 4}};
  BinaryHierarchicalSoftmax first(3, saved), same(3, saved), different(3, other);
  const TempFolder folder;
  serializers::save(folder / "m.npz", first);
  serializers::load(folder / "m.npz", same);
  EXPECT_EQ(testing::difference(same.W.data(), first.W.data()), "");
  const Array before = different.W.data().copy();
  expect_contains(error_of<IoError>([&] { serializers::load(folder / "m.npz", different); }),
                  {"tree_digest: expected (0, "});
  EXPECT_EQ(testing::difference(different.W.data(), before), "");
  EXPECT_THROW(different = first, ShapeError);
  EXPECT_EQ(testing::difference(different.W.data(), before), "");
}

TEST_P(Hierarchy, AnEmptyBatchHasNoLoss) {
  const BinaryHierarchicalSoftmax loss = layer();
  const Variable x(zeros({0, 3}, {Dtype::kFloat64, device()}));
  const Variable y = loss(x, zeros({0}, {Dtype::kInt32, device()}));
  y.backward();
  EXPECT_EQ(y.data().item<double>(), 0);
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
  EXPECT_EQ(testing::difference(loss.W.grad(), zeros_like(loss.W.data())), "");
}

TEST_P(Hierarchy, RefusesTreesAndLabelsThatDoNotFit) {
  const DeviceScope scope(device());
  EXPECT_EQ(error_of<ValueError>([] { BinaryHierarchicalSoftmax(3, 1); }),
            "BinaryHierarchicalSoftmax: expected a tree of at least 2 leaves");
  EXPECT_EQ(error_of<ValueError>([] {
              BinaryHierarchicalSoftmax(3, {{1, 2}, 1});
            }),
            "BinaryHierarchicalSoftmax: id 1 is at two leaves of the tree");
  EXPECT_EQ(error_of<ValueError>([] {
              BinaryHierarchicalSoftmax(3, {{1, 2147483647}, 2});
            }),
            "BinaryHierarchicalSoftmax: id 2147483647 in a tree of 3 leaves would need a table of "
            "2147483648 ids; expected ids below 16777216: number the leaves from 0");
  EXPECT_NO_THROW(BinaryHierarchicalSoftmax(3, {1, (1 << 24) - 1}));
  EXPECT_THROW(BinaryHierarchicalSoftmax(
                   3, BinaryHierarchicalSoftmax::create_huffman_tree({{0, 2}, {1 << 24, 1}})),
               ValueError);
  std::vector<int32_t> chain;  // its paths would fill 10 GB
  for (int32_t id = 0; id < 66000; ++id) chain.insert(chain.end(), {BinaryTree::kInner, id});
  chain.push_back(66000);
  EXPECT_EQ(error_of<ValueError>(
                [&] { BinaryHierarchicalSoftmax(3, BinaryTree::from_pre_order(chain)); }),
            "BinaryHierarchicalSoftmax: the paths of the tree have 2178099000 nodes, more than "
            "int32 counts; use a tree that is less deep");
  EXPECT_THROW(BinaryHierarchicalSoftmax(0, tree()), ValueError);
  EXPECT_THROW(BinaryHierarchicalSoftmax(2, tree(), {.initialW = draw({4, 3})}), ShapeError);
  BinaryHierarchicalSoftmax loss = layer();
  const Array x = draw({2, 3});
  EXPECT_THROW(loss(x, draw({2})), InvalidType);
  EXPECT_THROW(loss(draw({2, 4}), ids({1, 2})), InvalidType);
  for (const int32_t wrong : {3, 9, 100, -1, 0}) {
    if (device().is_cpu()) {
      EXPECT_EQ(error_of<ValueError>([&] {
                  loss(x, ids({1, wrong}));
                }),
                message("BinaryHierarchicalSoftmax: label ", wrong,
                        " at position 1 is not a leaf of the tree"));
      continue;
    }
    const Variable scores(x);
    const Variable y = loss(scores, ids({1, wrong}));
    EXPECT_TRUE(std::isnan(y.data().item<double>())) << wrong;
    y.backward();
    EXPECT_EQ(sum(scores.grad()[1]).item<double>(), 0) << wrong;
  }
  const BinaryHierarchicalSoftmax moved = std::move(loss);
  EXPECT_EQ(error_of<ValueError>([&] {
              loss(x, ids({1, 2}));
            }),
            "BinaryHierarchicalSoftmax: this layer has no weights; it was moved from");
}

}  // namespace
}  // namespace catena
