// Plan of a checkpoint: which process writes which elements.
#pragma once

#include <vector>

#include "catena/serializers/tensor_part.h"

namespace catena::serializers {

// Elements that one process writes, at most kPieceBytes of them, from one of its parts.
struct Piece {
  size_t part = 0;  // of that process's list
  TensorSlice slice;
};
inline constexpr int64_t kPieceBytes = int64_t{16} << 20;

// A slice and the processes that have it, each with the number of its part.
struct SharedSlice {
  TensorSlice slice;
  struct Holder {
    size_t process, part;
  };
  std::vector<Holder> holders;
};
// All slices of all processes, in the order in which they first come. Follows from its argument
// alone.
std::vector<SharedSlice> shared_slices(const std::vector<std::vector<TensorSlice>>& slices);

// The pieces of each process, given the slices of all. What several processes have is written once,
// in shares of about equal size; a small one by whoever has the least to write. Tensors without
// elements are pieces of none. Follows from its arguments alone.
//
// ValueError for names that stand for tensors of several shapes or dtypes, and for tensors of which
// elements are missing or would be written twice.
std::vector<std::vector<Piece>> plan_pieces(const std::vector<std::vector<TensorSlice>>& slices);

}  // namespace catena::serializers
