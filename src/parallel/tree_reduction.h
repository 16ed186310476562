// Sums by a balanced binary tree: their bits do not depend on how the leaves are divided over
// ranks.
#pragma once

#include "catena/comm/communicator.h"

namespace catena::parallel {

// Whether n is 1, 2, 4, 8, ...
inline bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// The sum of the rows of a contiguous array (n, m), n a power of two: ((0 + 1) + (2 + 3)) + ...
// A view of row 0; the rows are overwritten.
Array tree_sum(const Array& rows);

// x = factor * sum over ranks of x, in the tree whose leaves are the ranks, for a contiguous 1-d
// array. The number of ranks is a power of two. Where the x of a rank are sums of as many leaves
// each, in such a tree, the result is the sum of one tree over all leaves: the same bits on any
// number of ranks. Float addition is commutative, so it does not matter which operand is the left.
//
// Each rank sums a piece of x, so that all ranks together send 2 (n - 1) / n of x a rank, as in a
// ring; of short arrays each sums the whole. Everything is queued on the current stream.
void tree_all_reduce(Communicator& comm, const Array& x, double factor = 1);

}  // namespace catena::parallel
