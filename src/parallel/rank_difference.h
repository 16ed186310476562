// What differs between texts of the ranks, which have a line for each thing that should be equal.
#pragma once

#include <string>
#include <vector>

#include "catena/comm/communicator.h"

namespace catena::parallel {

// Ranks that have the same line.
struct RankGroup {
  std::string line;  // "" where the ranks have no more
  std::vector<int> ranks;
};

std::vector<std::string> split(const std::string& text, char at);

// The first line that is not the same on all ranks, with the ranks by what they have, rank 0 first;
// empty when there is none.
std::vector<RankGroup> first_difference(const std::vector<std::string>& texts);

// "the seed of the order is 1 on rank 0, 2 on ranks 1, 2" of lines "name\tvalue" whose names are
// equal.
std::string describe_values(const std::vector<RankGroup>& groups);

// The one rank of at least three that differs from all others; -1 if there is none: of two ranks
// that differ neither is known to be wrong.
int odd_rank_of(const std::vector<RankGroup>& groups);

// Throws a ValueError with this text on a rank, whose communicator then has failed: the report of
// the job names the odd rank. All ranks call it.
[[noreturn]] void fail_for_difference(Communicator& comm, const std::vector<RankGroup>& groups,
                                      const std::string& text);

}  // namespace catena::parallel
