#include "catena/comm/topology.h"

#include <map>

#include "catena/core/error.h"

namespace catena::comm {

Topology make_topology(int rank, const std::vector<int>& host_of_rank) {
  const int size = static_cast<int>(host_of_rank.size());
  CATENA_CHECK(ValueError, rank >= 0 && rank < size, "make_topology: rank ", rank, " of ", size,
               " ranks");
  Topology t;
  t.rank = rank;
  t.size = size;
  t.hosts.clear();
  std::map<int, int> number;  // host -> inter_rank
  std::vector<int> ranks_on;  // by inter_rank
  for (int r = 0; r < size; ++r) {
    const auto [entry, is_new] =
        number.emplace(host_of_rank[size_t(r)], static_cast<int>(number.size()));
    if (is_new) ranks_on.push_back(0);
    const int host = entry->second;
    t.hosts.push_back(host);
    if (r == rank) {
      t.inter_rank = host;
      t.intra_rank = ranks_on[size_t(host)];
    }
    ++ranks_on[size_t(host)];
  }
  t.intra_size = ranks_on[size_t(t.inter_rank)];
  t.inter_size = static_cast<int>(ranks_on.size());
  return t;
}

}  // namespace catena::comm
