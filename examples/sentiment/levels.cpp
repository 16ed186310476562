#include "levels.h"

#include "catena/array/creation.h"
#include "catena/core/device.h"

namespace sentiment {
namespace {

namespace ds = catena::datasets;

// A node is a row of four numbers.
constexpr int64_t kColumns = 4;

Array array_of(const Tree& tree) {
  std::vector<int32_t> numbers;
  for (const Node& node : tree)
    numbers.insert(numbers.end(), {node.label, node.word, node.left, node.right});
  return catena::array(numbers, {std::ssize(tree), kColumns});
}

// A node of one of the trees of a batch.
class Place {
 public:
  explicit Place(const Array& tree) : tree_(tree.data<int32_t>()), node_(tree.shape()[0] - 1) {}
  Node node() const {
    const int32_t* const row = tree_ + node_ * kColumns;
    return {row[0], row[1], row[2], row[3]};
  }
  Place at(int32_t node) const {
    Place other = *this;
    other.node_ = node;
    return other;
  }

 private:
  const int32_t* tree_;
  int64_t node_;
};

// Goes down through the levels.
class Leveller {
 public:
  explicit Leveller(std::vector<Place> roots) {
    for (add(roots); !below_.empty();) {
      const std::vector<Place> level = std::move(below_);
      const std::vector<int32_t> rows = add(level);
      parts_.push_back(catena::array(rows));
    }
  }
  ds::Arrays arrays() const {
    ds::Arrays result{catena::array(labels_), catena::array(words_)};
    result.insert(result.end(), parts_.begin(), parts_.end());
    return result;
  }

 private:
  // Adds a level and collects the one below. The row of each node in its level.
  std::vector<int32_t> add(const std::vector<Place>& level) {
    below_.clear();
    std::vector<int32_t> leaves;
    int32_t inner = 0;
    std::vector<int32_t> rows;
    for (const Place& place : level) {
      const Node node = place.node();
      rows.push_back(node.is_leaf() ? static_cast<int32_t>(leaves.size()) : inner++);
      if (node.is_leaf()) {
        leaves.push_back(node.label);
        words_.push_back(node.word);
        continue;
      }
      labels_.push_back(node.label);
      below_.insert(below_.end(), {place.at(node.left), place.at(node.right)});
    }
    labels_.insert(labels_.end(), leaves.begin(), leaves.end());
    for (size_t i = 0; i < level.size(); ++i)
      if (level[i].node().is_leaf()) rows[i] += inner;
    return rows;
  }

  std::vector<Place> below_;
  std::vector<int32_t> labels_, words_;
  std::vector<Array> parts_;
};

}  // namespace

std::vector<Levels::Size> Levels::sizes() const {
  int64_t nodes = labels.size();
  for (const Array& p : parts) nodes -= p.size();
  std::vector<Size> result;
  for (const Array& p : parts) {
    const int64_t inner = p.size() / 2;
    result.push_back({inner, nodes - inner});
    nodes = p.size();
  }
  result.push_back({0, nodes});
  return result;
}

ds::DatasetPtr dataset_of(const std::vector<Tree>& trees) {
  const catena::DeviceScope host("cpu:0");  // by_level reads the numbers
  std::vector<ds::Arrays> samples;
  for (const Tree& tree : trees) samples.push_back({array_of(tree)});
  return std::make_shared<ds::ListDataset>(std::move(samples));
}

ds::Arrays by_level(const std::vector<ds::Arrays>& trees) {
  const catena::DeviceScope host("cpu:0");
  std::vector<Place> roots;
  for (const ds::Arrays& tree : trees) roots.emplace_back(tree[0]);
  return Leveller(std::move(roots)).arrays();
}

Levels levels_of(const ds::Arrays& batch) {
  return {batch.at(0), batch.at(1), {batch.begin() + 2, batch.end()}};
}

}  // namespace sentiment
