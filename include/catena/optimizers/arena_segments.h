// The parameters of an arena as segments, for kernels that treat each in its own way.
#pragma once

#include <vector>

#include "catena/kernels/optimizer.h"
#include "catena/optimizers/arena.h"

namespace catena::optimizers {

// The arrays of RuleSegments, on the arena's device: a segment for each slot, with the gap behind
// it. None of an arena whose parameters are all treated alike.
struct ArenaSegments {
  Array starts, factors, pieces, first_piece;
  int64_t alignment = 1;

  // Whether the arena has segments.
  bool defined() const { return starts.defined(); }
  // What kernels get; as long as this object is unchanged.
  RuleSegments view() const;
};

// `factors` has three numbers for each slot, see RuleSegments::factors.
ArenaSegments segments_of(const ParameterArena& arena, const std::vector<double>& factors);

// Sums of squares of one or two arrays of equal length, which are the arena's elements from `first`
// on, others being zeros: float64 (arrays, segments).
Array segment_squares(const ArenaSegments& segments, const std::vector<const Array*>& values,
                      int64_t first = 0);

}  // namespace catena::optimizers
