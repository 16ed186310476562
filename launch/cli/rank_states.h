// What the ranks of a host are doing, in words, from their status board.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "status/status_board.h"

namespace catena::launch {

// "in all_reduce #41 sum float32[1000] for 3.2 s", "computing for 0.4 s, after all_reduce #40 ...",
// "ended". `now` as comm::monotonic_ns().
std::string describe_state(const comm::SlotSnapshot& slot, std::uint64_t now);

// How far a rank is on a communicator.
struct RankProgress {
  int rank = -1;
  std::uint64_t calls = 0;  // the number of its last call
  bool waits = false;       // it is inside that call
  double seconds = 0;       // for how long
};

// The ranks that are behind the others on the communicator that most ranks used last, as a line
// with its end: "behind: rank 1, at call #40 while ranks 0, 2-3 have waited in call #41 for 3.2 s".
// "" when all are equally far.
std::string describe_stragglers(const std::vector<RankProgress>& ranks);

// Of the ranks whose last collectives were on the communicator that most ranks used last.
std::vector<RankProgress> progress_of(const comm::StatusBoard& board, std::uint64_t now);

}  // namespace catena::launch
