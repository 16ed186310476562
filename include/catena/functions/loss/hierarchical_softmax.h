// Hierarchical softmax: the probability of a word as the product of decisions along its path in a
// binary tree.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// A binary tree whose leaves are ids: BinaryTree tree = {{1, 2}, 3}. Ids are not negative, else
// ValueError; a tree may be deep.
class BinaryTree {
 public:
  BinaryTree(int32_t leaf);
  BinaryTree(const BinaryTree& left, const BinaryTree& right);
  // Of a list that is made at run time; ValueError unless it has two children.
  static BinaryTree of(const std::vector<BinaryTree>& children);
  // From its nodes in pre-order: ids of leaves, and kInner before the two children of each inner
  // node. ValueError where these are not one tree.
  static BinaryTree from_pre_order(std::vector<int32_t> nodes);
  static constexpr int32_t kInner = -1;
  const std::vector<int32_t>& pre_order() const { return nodes_; }

  // The number of leaves; nested pairs as text, ((1, 2), 3).
  int64_t leaf_count() const { return static_cast<int64_t>(nodes_.size() + 1) / 2; }
  friend bool operator==(const BinaryTree&, const BinaryTree&) = default;
  friend std::ostream& operator<<(std::ostream& os, const BinaryTree& tree);

 private:
  BinaryTree() = default;
  std::vector<int32_t> nodes_;
};

// Start values and dtype of a BinaryHierarchicalSoftmax.
struct BinaryHierarchicalSoftmaxOptions {
  InitialValue initialW = {};       // (inner nodes, in); uniform of [-1, 1) unless given
  std::optional<Dtype> dtype = {};  // float32, or that of initialW
};

// The sum over the batch, not its mean, of -log p(t | x), where p is the product over the inner
// nodes e on the path to leaf t of 1 / (1 + exp(-sign * x . W[e])), with sign 1 where the path goes
// to the left child, else -1 (Morin and Bengio 2005). Inner nodes have the rows of W in pre-order.
// One kernel forward; backward one for the gradients of the terms, and one that adds up those of a
// row. The tree's tables move, save and load with the model; a file of another tree is refused
// (IoError), as is the assignment of a layer with another one (ShapeError).
//
// A table has an entry for each id up to the largest: number the leaves from 0. ValueError for an
// id of 2^24 or more that is not below 64 times the number of leaves.
//
// ValueError for an in_size below 1, a tree of one leaf, and an id at two leaves; ShapeError for an
// initialW of another shape, DtypeError for integer dtypes.
class BinaryHierarchicalSoftmax : public Parameterized {
 public:
  BinaryHierarchicalSoftmax(int64_t in_size, const BinaryTree& tree,
                            const BinaryHierarchicalSoftmaxOptions& options = {});

  // x: (batch, in) floats of W's dtype; t: int32 or int64 (batch), ids of leaves. 0-d, of x's
  // dtype; 16-bit numbers are summed in float32. No gradient flows to t; W's gradient is written or
  // added straight to its place. InvalidType for other dtypes and shapes, DeviceError for operands
  // on different devices. A t that is not a leaf is a ValueError on a CPU; on a GPU, where looking
  // would wait for the device, it makes the loss NaN and has no gradient.
  Variable operator()(const VariableOperand& x, const VariableOperand& t) const;

  // The Huffman tree of counts by id (Huffman 1952), whose frequent ids have short paths: joins the
  // two nodes of the smallest counts, the smaller to the left, until one is left. Among equal
  // counts the node with the smaller position in the map is first; a joined node has the smaller
  // position of its children. ValueError for an empty map, and counts that are negative or not
  // finite.
  static BinaryTree create_huffman_tree(const std::map<int32_t, double>& counts);

  // A number made of the tree, as an array without elements, uint8 (0, number): files and copies
  // compare shapes.
  OwnedPersistent tree_digest;
  OwnedParameter W;        // (inner nodes, in)
  OwnedPersistent begins;  // int32 (ids + 1): the path of an id begins and ends there
  OwnedPersistent paths;   // int32: rows of W, path by path
  OwnedPersistent codes;   // int8: their signs
  CATENA_PARAMETERS(tree_digest, W, begins, paths, codes)

 private:
  int64_t depth_;  // of the longest path
};

}  // namespace catena::functions
