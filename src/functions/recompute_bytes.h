// Bytes that a recomputed part of a model keeps between forward and backward, and options that do
// not go together.
#pragma once

#include <cstddef>

#include "catena/functions/recompute.h"

namespace catena::functions {

// By what is kept, the results of the part included.
struct RecomputeBytes {
  size_t& of(Keep keep) { return bytes[size_t(keep)]; }
  size_t of(Keep keep) const { return bytes[size_t(keep)]; }
  size_t bytes[4] = {};
};

// ValueError for offload with a budget, or of what is not computed again.
void check_options(const RecomputeOptions& options);
// Of the blocks of memory that hold the arrays, each counted once.
size_t bytes_of(const Arrays& arrays);
// Of a part that gave the results and whose expensive functions gave `kept`; not of kEverything.
RecomputeBytes bytes_kept(const KeptResults& kept, const Arrays& results);

}  // namespace catena::functions
