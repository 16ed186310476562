// Topology of a communicator: which rank is on which host.
#pragma once

#include <vector>

namespace catena::comm {

// ChainerMN's six numbers. Ranks of one host are numbered by intra_rank in rank order; hosts are
// numbered by inter_rank in the order in which they first appear.
struct Topology {
  int rank = 0;
  int size = 1;
  int intra_rank = 0;
  int intra_size = 1;
  int inter_rank = 0;
  int inter_size = 1;
  std::vector<int> hosts{0};  // inter_rank of every rank
};

// host_of_rank[r] is any number that is equal for the ranks of one host.
// Throws ValueError when rank is not an index of it.
Topology make_topology(int rank, const std::vector<int>& host_of_rank);

}  // namespace catena::comm
