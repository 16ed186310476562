// Gradients of slices of a batch, added up in the order of a balanced binary tree.
#pragma once

#include <vector>

#include "catena/optimizers/arena.h"

namespace catena::parallel {

// The sums of a rank's slices, of every arena, as a binary counter: while leaf k is added, level l
// holds the sum of 2^l neighbouring leaves if bit l of k is set. So log2(leaves) blocks of the size
// of the gradients are kept, none where a rank has one slice. Sums are in float32 for gradients of
// 16 bits.
class SliceSums {
 public:
  // Before the first of `leaves` leaves, a power of two; `user` is a stream that will use the sums.
  void begin(const std::vector<optimizers::ParameterArena>& arenas, int leaves, const Stream& user);
  // Adds the gradients of an arena, times `weight`, as this leaf; not for the last.
  void add(size_t arena, const Array& gradient, double weight, int leaf) const;
  // Adds these elements of the last leaf: the sum of all leaves, in the memory of `gradient` if it
  // has the dtype of the sums.
  Array finish(size_t arena, const optimizers::ElementRange& elements, const Array& gradient,
               double weight) const;

 private:
  std::vector<Arrays> levels_;  // of each arena
};

}  // namespace catena::parallel
