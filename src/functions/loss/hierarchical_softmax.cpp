// BinaryHierarchicalSoftmax: the tables of a tree, and the loss of the rows on a path.
#include "catena/functions/loss/hierarchical_softmax.h"

#include <algorithm>
#include <limits>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "core/text_hash.h"
#include "functions/common/advice.h"
#include "functions/common/labels.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"
#include "functions/loss/sampled_logistic.h"

namespace catena::functions {
namespace {

constexpr const char* kLayer = "BinaryHierarchicalSoftmax";

// A leaf, and where its path is in the lists of all paths.
struct Leaf {
  int32_t id;
  size_t begin, end;
};
struct Paths {
  std::vector<int32_t> begins, rows;
  std::vector<int8_t> signs;
  int64_t depth = 0;
};

// visit(leaf, rows, signs) for each leaf in pre-order, with the path to it.
template <class Visit>
void visit_paths(const BinaryTree& tree, Visit visit) {
  std::vector<int32_t> rows;
  std::vector<int8_t> signs;
  int32_t inner = 0;
  for (const int32_t node : tree.pre_order()) {
    if (node == BinaryTree::kInner) {
      rows.push_back(inner++);
      signs.push_back(1);
      continue;
    }
    visit(node, rows, signs);
    while (!signs.empty() && signs.back() < 0) {  // both children are done
      rows.pop_back();
      signs.pop_back();
    }
    if (!signs.empty()) signs.back() = -1;
  }
}

// Before anything of that size is made: the paths of a tree that is a chain grow with the square of
// its leaves.
void check_path_nodes(const BinaryTree& tree) {
  int64_t nodes = 0;
  visit_paths(tree, [&](int32_t, const auto& rows, const auto&) { nodes += int64_t(rows.size()); });
  CATENA_CHECK(ValueError, nodes <= std::numeric_limits<int32_t>::max(), kLayer,
               ": the paths of the tree have ", nodes,
               " nodes, more than int32 counts; use a tree that is less deep");
}

// In pre-order, each leaf with its path.
std::vector<Leaf> collect_leaves(const BinaryTree& tree, Paths& found) {
  std::vector<Leaf> leaves;
  visit_paths(tree, [&](int32_t leaf, const auto& rows, const auto& signs) {
    const size_t begin = found.rows.size();
    found.rows.insert(found.rows.end(), rows.begin(), rows.end());
    found.signs.insert(found.signs.end(), signs.begin(), signs.end());
    found.depth = std::max(found.depth, int64_t(rows.size()));
    leaves.push_back({leaf, begin, found.rows.size()});
  });
  return leaves;
}

// Before anything of that size is made: the table of paths has an entry for each id up to the
// largest one. Some entries for each leaf take no more memory than the leaf's row of W.
void check_largest_id(const std::vector<Leaf>& in_order) {
  constexpr int64_t kAlwaysFit = int64_t{1} << 24, kMostPerLeaf = 64;
  const int64_t ids = int64_t{in_order.back().id} + 1, leaves = int64_t(in_order.size());
  CATENA_CHECK(ValueError, ids <= std::max(kAlwaysFit, kMostPerLeaf * leaves), kLayer, ": id ",
               in_order.back().id, " in a tree of ", leaves, " leaves would need a table of ", ids,
               " ids; expected ids below ", std::max(kAlwaysFit, kMostPerLeaf * leaves),
               ": number the leaves from 0");
}

// Paths in the order of ids; those between have none.
Paths paths_of(const BinaryTree& tree) {
  CATENA_CHECK(ValueError, tree.leaf_count() > 1, kLayer, ": expected a tree of at least 2 leaves");
  check_path_nodes(tree);
  Paths found, result;
  std::vector<Leaf> leaves = collect_leaves(tree, found);
  std::ranges::sort(leaves, {}, &Leaf::id);
  check_largest_id(leaves);
  result.depth = found.depth;
  result.begins.push_back(0);
  for (const Leaf& leaf : leaves) {
    CATENA_CHECK(ValueError, result.begins.size() <= size_t(leaf.id) + 1, kLayer, ": id ", leaf.id,
                 " is at two leaves of the tree");
    result.begins.resize(size_t(leaf.id) + 1, result.begins.back());
    const auto begin = ptrdiff_t(leaf.begin), end = ptrdiff_t(leaf.end);
    result.rows.insert(result.rows.end(), found.rows.begin() + begin, found.rows.begin() + end);
    result.signs.insert(result.signs.end(), found.signs.begin() + begin, found.signs.begin() + end);
    result.begins.push_back(int32_t(result.rows.size()));
  }
  return result;
}

// 48 bits, which NumPy takes for an extent beside 0.
int64_t digest_of(const BinaryTree& tree) {
  const std::vector<int32_t>& nodes = tree.pre_order();
  const std::string_view bytes(reinterpret_cast<const char*>(nodes.data()),
                               nodes.size() * sizeof(int32_t));
  return static_cast<int64_t>(text_hash(bytes) >> 16);
}

Array initial_inner_nodes(int64_t in, const BinaryTree& tree,
                          const BinaryHierarchicalSoftmaxOptions& options) {
  CATENA_CHECK(ValueError, in > 0, kLayer, ": expected an in_size of at least 1, got ", in);
  const Shape shape{tree.leaf_count() - 1, in};
  const Array W =
      initial_weight(kLayer, shape, "(inner nodes, in)", options.initialW, options.dtype, 0);
  return options.initialW ? W : random::uniform(shape, -1, 1, W.dtype());
}

void check_hierarchical_softmax(const FunctionCall& call) {
  const Array &x = call[0].data(), &t = call[1].data(), &W = call[2].data();
  const TypeOf in(x, "x"), labels(t, "t"), weight(W, "W");
  const Checks checks(call.named(), in, labels, weight);
  checks.require_float(in);
  checks.advised([&] { return layer_dtype_advice(x, W); }).require(in.dtype() == weight.dtype());
  if (t.dtype() != Dtype::kInt64) checks.require(labels.dtype() == Dtype::kInt32);
  checks.require(in.ndim() == 2, labels.ndim() == 1, in.shape(0) == labels.shape(0),
                 in.shape(1) == weight.shape(1));
}

// On a CPU.
void check_leaves(const FunctionCall& call, const Array& t, const Array& begins) {
  const int32_t *ids = t.data<int32_t>(), *begin = begins.data<int32_t>();
  for (int64_t i = 0; i < t.size(); ++i) {
    const int64_t id = ids[i];
    const bool is_leaf = id >= 0 && id + 1 < begins.size() && begin[id] < begin[id + 1];
    CATENA_CHECK(ValueError, is_leaf, call.label(), ": label ", id, " at position ", i,
                 " is not a leaf of the tree");
  }
}

}  // namespace

BinaryHierarchicalSoftmax::BinaryHierarchicalSoftmax(
    int64_t in_size, const BinaryTree& tree, const BinaryHierarchicalSoftmaxOptions& options) {
  const Paths found = paths_of(tree);
  W = OwnedParameter(initial_inner_nodes(in_size, tree, options));
  const Device device = W.device();
  tree_digest = OwnedPersistent(zeros({0, digest_of(tree)}, {Dtype::kUInt8, device}));
  begins = OwnedPersistent(array(found.begins).to(device));
  paths = OwnedPersistent(array(found.rows).to(device));
  codes = OwnedPersistent(array(found.signs).to(device));
  depth_ = found.depth;
}

Variable BinaryHierarchicalSoftmax::operator()(const VariableOperand& x,
                                               const VariableOperand& t) const {
  CATENA_CHECK(ValueError, W.defined(), kLayer, ": this layer has no weights; it was moved from");
  FunctionCall call(kLayer, Autocast::kFloat32, x, t, W.variable());
  check_hierarchical_softmax(call);
  call.require_one_device();
  const Array labels = Labels::as_int32(call[1].data());
  if (labels.device().is_cpu()) check_leaves(call, labels, begins.data());
  const Array rows = Array::uninitialized({labels.size(), depth_}, Dtype::kInt32, labels.device());
  const TreePaths tree{&labels, &begins.data(), &paths.data(), &codes.data()};
  return apply_sampled_logistic(call, rows, &tree, false);
}

}  // namespace catena::functions
