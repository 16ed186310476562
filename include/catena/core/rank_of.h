// RankOf: one of several ranks among which work is divided.
#pragma once

namespace catena {

// The rank's number, from 0 on, and how many ranks there are.
struct RankOf {
  int rank = 0;
  int ranks = 1;
};

}  // namespace catena
