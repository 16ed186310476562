// Progress of the ranks of a job, and the ranks that the others wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "status/status_board.h"
#include "wire/state_report.h"

namespace catena::launch {

// How far a rank is on a communicator.
struct RankProgress {
  int rank = -1;
  std::uint64_t calls = 0;  // the number of its last call
  bool waits = false;       // it is inside that call
  double seconds = 0;       // for how long
  double age = 0;           // how long ago that was seen
};

// The ranks that are behind the others on the communicator that most ranks used last, as a line
// with its end: "behind: rank 1 at call #40, while ranks 0, 2-3 are at call #41, since 3.2 s".
// Of a rank seen before one of those entered its call, nobody knows how far it is by now. "" when
// none is known to be behind.
std::string describe_stragglers(const std::vector<RankProgress>& ranks);

// Of the ranks whose last collectives were on the communicator that most ranks used last. A rank of
// `board` counts also when it has used another one since; nullptr: there is no board.
std::vector<RankProgress> progress_of(const std::vector<StateReport>& ranks,
                                      const comm::StatusBoard* board);

// Lines with their ends, "" when there is nothing to say: the ranks that lack an update which
// another rank made more than 5 s ago, and those whose steps, without their waits for others, take
// more than 1.5 times the median.
std::string describe_slow_ranks(const std::vector<StateReport>& ranks);

// "updates: 120, 8.1 a second" of the rank that has made most, as a line; "" when there are none.
std::string describe_updates(const std::vector<StateReport>& ranks);

}  // namespace catena::launch
