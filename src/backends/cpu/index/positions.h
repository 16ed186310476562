// Positions of index arrays on the CPU.
#pragma once

#include <algorithm>

#include "catena/array/indexing.h"
#include "catena/kernels/index.h"

namespace catena::host {

// The position in [0, extent) that an element of the index array stands for.
inline int64_t resolve(int64_t index, int64_t extent, OutOfRange mode) {
  if (index >= 0 && index < extent) return index;
  if (mode == OutOfRange::kClip) return index < 0 ? 0 : extent - 1;
  if (index < 0 && index >= -extent) return index + extent;
  const int64_t rest = index % extent;
  return rest < 0 ? rest + extent : rest;
}

// Whether a slice belongs to the strict id.
inline bool is_row(int64_t id, int64_t extent, const IdRule& rule) {
  return id >= 0 && id < extent && id != rule.ignored;
}

inline constexpr int64_t kPositionPiece = 512;  // positions resolved at a time

// Resolves n positions into `places` and returns them. Returns the given positions if none needs
// resolving: the sign of position | (extent - 1 - position) says whether one does.
template <class I>
const int64_t* resolve_all(const I* positions, int64_t n, int64_t extent, OutOfRange mode,
                           int64_t* places) {
  int64_t outside = 0;
  for (int64_t j = 0; j < n; ++j)
    outside |= int64_t(positions[j]) | (extent - 1 - int64_t(positions[j]));
  if (outside < 0) {
    for (int64_t j = 0; j < n; ++j) places[j] = resolve(positions[j], extent, mode);
    return places;
  }
  if constexpr (sizeof(I) == sizeof(int64_t)) return positions;
  std::copy_n(positions, n, places);
  return places;
}

template <class F>
void with_indices(const Array& indices, const F& f) {
  if (indices.dtype() == Dtype::kInt32)
    f(indices.data<int32_t>());
  else
    f(indices.data<int64_t>());
}

}  // namespace catena::host
