#include "model.h"

#include <cmath>
#include <map>

#include "catena/functions/array/concat.h"
#include "catena/functions/array/get_item.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "catena/functions/array/take.h"
#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/training/evaluator.h"

namespace sentiment {

using catena::Variables;
namespace ds = catena::datasets;

namespace {

Variable joined(const Variables& parts) {
  return parts.size() == 1 ? parts[0] : F::concat(parts, 0);
}

// The vectors of all leaves, cut into those of the levels that have any.
Variables cut(const Variable& leaves, const std::vector<Levels::Size>& sizes) {
  catena::Axes positions;
  int64_t end = 0;
  for (const Levels::Size& size : sizes) {
    if (size.leaves == 0) continue;
    if (end > 0) positions.push_back(end);
    end += size.leaves;
  }
  return positions.empty() ? Variables{leaves} : F::split_axis(leaves, positions, 0);
}

// Those of the roots, which come first.
Variable root_accuracy(const Variable& scores, const Array& labels, int64_t trees) {
  return F::accuracy(F::get_item(scores, {catena::Slice(0, trees)}),
                     labels(catena::Slice(0, trees)));
}

}  // namespace

Variable RecursiveNet::operator()(const Levels& levels) const {
  const std::vector<Levels::Size> sizes = levels.sizes();
  Variables words = cut(leaves(levels.words), sizes);
  Variables by_level(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    Variables parts;
    if (sizes[d].inner > 0) {
      const Variable pairs = F::take(by_level[d + 1], levels.parts[d], 0);
      parts.push_back(nodes(F::reshape(pairs, {sizes[d].inner, l.in_size()})));
    }
    if (sizes[d].leaves > 0) {
      parts.push_back(words.back());
      words.pop_back();
    }
    by_level[d] = joined(parts);
  }
  return scores(joined(by_level));
}

Variables score_of(const RecursiveNet& model, const ds::Batch& batch) {
  const Levels levels = levels_of(batch.arrays);
  const Variable scores = model(levels);
  const Variable sum =
      F::softmax_cross_entropy(scores, levels.labels, {.reduction = F::Reduction::kSum});
  return {sum / batch.weight, root_accuracy(scores, levels.labels, batch.size())};
}

Accuracies accuracies_of(RecursiveNet& model, ds::BatchIterator& batches,
                         catena::Communicator& comm) {
  const auto measure = [&](const ds::Batch& batch, catena::training::Means& means) {
    const Levels levels = levels_of(batch.arrays);
    const Variable scores = model(levels);
    const auto nodes = static_cast<double>(levels.labels.size());
    const auto trees = static_cast<double>(batch.size());
    means.add("nodes", F::accuracy(scores, levels.labels).data(), nodes);
    means.add("roots", root_accuracy(scores, levels.labels, batch.size()).data(), trees);
    means.add("nodes_of_a_tree", nodes / trees, trees);
  };
  const auto shares = catena::training::evaluate(
      model, batches, {"nodes", "roots", "nodes_of_a_tree"}, measure, &comm);
  const int64_t trees = batches.size();
  const int64_t nodes = std::llround(shares.at("nodes_of_a_tree") * static_cast<double>(trees));
  const auto accuracy = [&](const char* name, int64_t count) {
    return Accuracy{std::llround(shares.at(name) * static_cast<double>(count)), count};
  };
  return {accuracy("nodes", nodes), accuracy("roots", trees)};
}

}  // namespace sentiment
