#include "slice_sums.h"

#include "catena/array/math.h"
#include "catena/core/memory.h"
#include "core/compute_dtype.h"

namespace catena::parallel {
namespace {

using optimizers::ParameterArena;

// In the dtype of sums; in place where that is the gradient's.
Array weighted_leaf(const Array& gradient, double weight) {
  const Array leaf = gradient.astype(compute_dtype(gradient.dtype()), false);
  if (weight != 1) multiply(leaf, weight, leaf);
  return leaf;
}

size_t levels_for(int leaves) {
  size_t levels = 0;
  while ((1 << levels) < leaves) ++levels;
  return levels;
}

bool fits(const Arrays& levels, size_t count, const ParameterArena& arena) {
  return levels.size() == count &&
         (count == 0 || (levels[0].size() == arena.size() && levels[0].device() == arena.device() &&
                         levels[0].dtype() == compute_dtype(arena.dtype())));
}

}  // namespace

void SliceSums::begin(const std::vector<ParameterArena>& arenas, int leaves, const Stream& user) {
  levels_.resize(arenas.size());
  for (size_t a = 0; a < arenas.size(); ++a) {
    const ParameterArena& arena = arenas[a];
    const size_t count = levels_for(leaves);
    if (fits(levels_[a], count, arena)) continue;
    levels_[a].clear();
    for (size_t l = 0; l < count; ++l) {
      levels_[a].push_back(
          Array::uninitialized({arena.size()}, compute_dtype(arena.dtype()), arena.device()));
      record_use(*levels_[a].back().storage(), user);
    }
  }
}

void SliceSums::add(size_t arena, const Array& gradient, double weight, int leaf) const {
  const Arrays& levels = levels_[arena];
  if (leaf % 2 == 0) {
    levels[0].assign(gradient);
    if (weight != 1) multiply(levels[0], weight, levels[0]);
    return;
  }
  Array sum = weighted_leaf(gradient, weight);
  for (size_t level = 0; (leaf >> level) % 2 == 1; ++level) {
    const bool is_last = (leaf >> (level + 1)) % 2 == 0;
    const Array& out = levels[is_last ? level + 1 : level];
    catena::add(levels[level], sum, out);
    sum = out;
  }
}

Array SliceSums::finish(size_t arena, const optimizers::ElementRange& elements,
                        const Array& gradient, double weight) const {
  const Array sum = weighted_leaf(gradient, weight);
  for (const Array& level : levels_[arena])
    catena::add(level(Slice(elements.begin, elements.end)), sum, sum);
  return sum;
}

}  // namespace catena::parallel
