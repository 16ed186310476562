// Ids and labels of which each rank has a range.
#pragma once

#include <optional>

#include "catena/comm/communicator.h"

namespace catena::parallel {

// Numbers of a whole range [0, size * each), as the rank that has `each` of them sees them.
struct OwnNumbers {
  Array local;  // int64, counted from the rank's first; 0 for those of other ranks
  Array own;    // bool: whether they are this rank's, and not ignored
  Array known;  // bool: whether they are in the whole range, or ignored

  OwnNumbers(const Array& numbers, int64_t each, const Communicator& comm,
             std::optional<int64_t> ignored);
};

}  // namespace catena::parallel
