// BinaryTree, which is its nodes in pre-order, and Huffman trees.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <queue>
#include <tuple>
#include <utility>

#include "catena/core/error.h"
#include "catena/functions/loss/hierarchical_softmax.h"

namespace catena::functions {

BinaryTree::BinaryTree(int32_t leaf) : nodes_{leaf} {
  CATENA_CHECK(ValueError, leaf >= 0, "BinaryTree: expected an id of at least 0, got ", leaf);
}

BinaryTree::BinaryTree(const BinaryTree& left, const BinaryTree& right) {
  nodes_.reserve(1 + left.nodes_.size() + right.nodes_.size());
  nodes_.push_back(kInner);
  for (const BinaryTree* child : {&left, &right})
    nodes_.insert(nodes_.end(), child->nodes_.begin(), child->nodes_.end());
}

BinaryTree BinaryTree::of(const std::vector<BinaryTree>& children) {
  CATENA_CHECK(ValueError, children.size() == 2,
               "BinaryTree: All internal nodes must have two child nodes, got one with ",
               children.size());
  return {children[0], children[1]};
}

BinaryTree BinaryTree::from_pre_order(std::vector<int32_t> nodes) {
  int64_t open = 1;  // children that are to come
  for (const int32_t node : nodes) {
    CATENA_CHECK(ValueError, open > 0, "BinaryTree: nodes follow after the end of the tree");
    CATENA_CHECK(ValueError, node >= kInner, "BinaryTree: expected an id of at least 0, got ",
                 node);
    open += node == kInner ? 1 : -1;
  }
  CATENA_CHECK(ValueError, open == 0, "BinaryTree: All internal nodes must have two child nodes, ",
               open, " are missing");
  BinaryTree tree;
  tree.nodes_ = std::move(nodes);
  return tree;
}

std::ostream& operator<<(std::ostream& os, const BinaryTree& tree) {
  std::vector<int> written;  // children, of the nodes that are open
  for (const int32_t node : tree.nodes_) {
    if (node == BinaryTree::kInner) {
      os << '(';
      written.push_back(0);
      continue;
    }
    os << node;
    while (!written.empty() && ++written.back() == 2) {
      os << ')';
      written.pop_back();
    }
    if (!written.empty()) os << ", ";
  }
  return os;
}

namespace {

// The smallest first.
struct HuffmanNode {
  double count;
  int64_t position;
  int64_t index;  // of the node in the list of all
  bool operator>(const HuffmanNode& other) const {
    return std::tie(count, position) > std::tie(other.count, other.position);
  }
};
// Of a leaf the id, of an inner node the indices of its children.
struct Joined {
  int32_t id;
  int64_t left, right;
};

std::vector<int32_t> pre_order_of(const std::vector<Joined>& nodes) {
  std::vector<int32_t> result;
  std::vector<int64_t> open{int64_t(nodes.size()) - 1};
  while (!open.empty()) {
    const Joined& node = nodes[size_t(open.back())];
    open.pop_back();
    result.push_back(node.id);
    if (node.id != BinaryTree::kInner) continue;
    open.push_back(node.right);
    open.push_back(node.left);
  }
  return result;
}

}  // namespace

BinaryTree BinaryHierarchicalSoftmax::create_huffman_tree(const std::map<int32_t, double>& counts) {
  CATENA_CHECK(ValueError, !counts.empty(), "create_huffman_tree: Empty vocabulary");
  std::vector<Joined> nodes;
  std::priority_queue<HuffmanNode, std::vector<HuffmanNode>, std::greater<>> queue;
  for (const auto& [id, count] : counts) {
    CATENA_CHECK(ValueError, id >= 0, "create_huffman_tree: expected ids of at least 0, got ", id);
    CATENA_CHECK(ValueError, std::isfinite(count) && count >= 0, "create_huffman_tree: count ",
                 count, " of id ", id, " is negative or not finite");
    const auto position = int64_t(nodes.size());
    queue.push({count, position, position});
    nodes.push_back({id, 0, 0});
  }
  while (queue.size() > 1) {
    const HuffmanNode first = queue.top();
    queue.pop();
    const HuffmanNode second = queue.top();
    queue.pop();
    queue.push({first.count + second.count, std::min(first.position, second.position),
                int64_t(nodes.size())});
    nodes.push_back({BinaryTree::kInner, first.index, second.index});
  }
  return BinaryTree::from_pre_order(pre_order_of(nodes));
}

}  // namespace catena::functions
