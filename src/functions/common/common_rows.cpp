#include "functions/common/common_rows.h"

namespace catena::functions {
namespace {

// Extents and strides of an array, in elements, without the axes of one element.
struct Walk {
  std::vector<int64_t> extents, strides;

  Walk(const Array& a, const Axes& axes) {
    for (const int axis : axes) {
      if (a.shape()[size_t(axis)] == 1) continue;
      extents.push_back(a.shape()[size_t(axis)]);
      strides.push_back(a.strides()[size_t(axis)] / a.itemsize());
    }
  }
  // Whether axes [begin, end) are one with neighbours at the distance of those of the last.
  bool is_one(size_t begin, size_t end) const {
    for (size_t i = begin; i + 1 < end; ++i)
      if (strides[i] != strides[i + 1] * extents[i + 1]) return false;
    return true;
  }
  bool is_rows(size_t split) const {
    const size_t all = extents.size();
    return is_one(0, split) && is_one(split, all) && (split == all || strides[all - 1] == 1);
  }
};

}  // namespace

std::optional<CommonRows> CommonRows::of(const std::vector<const Array*>& arrays,
                                         const MemoryOrder& order, bool single_numbers) {
  const Axes axes = order.axes(arrays[0]->ndim());
  std::vector<Walk> walks;
  for (const Array* a : arrays) walks.emplace_back(*a, axes);
  const std::vector<int64_t>& extents = walks[0].extents;
  const size_t splits = extents.size() + (single_numbers || extents.empty());
  for (size_t split = 0; split < splits; ++split) {
    bool fits = true;
    for (const Walk& walk : walks) fits = fits && walk.is_rows(split);
    if (!fits) continue;
    CommonRows found;
    for (size_t i = 0; i < extents.size(); ++i)
      (i < split ? found.rows : found.columns) *= extents[i];
    for (const Walk& walk : walks) found.steps.push_back(split > 0 ? walk.strides[split - 1] : 0);
    return found;
  }
  return {};
}

Array dense_copy(const Array& a, const MemoryOrder& order) {
  const Array copy = Array::uninitialized(a.shape(), a.dtype(), a.device(), order);
  copy.assign(a);
  return copy;
}

}  // namespace catena::functions
