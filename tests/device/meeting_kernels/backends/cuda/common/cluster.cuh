// Stands in for src/backends/cuda/common/cluster.cuh as early_launch.cuh beside it does: the
// threads of a cluster's blocks are fibers that run together.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "backends/cuda/common/dynamic_shared.cuh"

namespace catena::gpu {
namespace {

inline std::vector<fibers::Meeting> meeting_of_cluster;  // one

inline int block_of_cluster() { return int(place_in_cluster); }
// Which threads have arrived and not waited yet, and whether one did either twice.
inline bool has_arrived[1024], has_lost_turn;
inline void take_turn(bool arrives) {
  bool& arrived = has_arrived[number_of_thread()];
  has_lost_turn |= arrived == arrives;
  arrived = arrives;
}
inline void arrive_at_cluster() { take_turn(true); }
inline void wait_for_cluster() {
  take_turn(false);
  wait_at(meeting_of_cluster[0]);
}
inline void store_in_block(float* place, int block, float v) {
  unsigned char* const there = reinterpret_cast<unsigned char*>(place) +
                               (block - int(place_in_cluster)) * std::ptrdiff_t(bytes_of_block);
  std::memcpy(there, &v, sizeof v);
}

struct ClusterShape {
  int number, blocks, threads;
  size_t bytes;
};

template <auto kKernel>
int most_clusters(const ClusterShape& shape, const Launch& launch) {
  return launch.multiprocessors / shape.blocks;
}

template <auto kKernel, class... Args>
void launch_clusters(const ClusterShape& shape, unsigned clusters, const Launch&,
                     const Args&... args) {
  const auto blocks = unsigned(shape.blocks), threads = unsigned(shape.threads);
  share_memory(blocks, shape.bytes);
  meeting_of_cluster.assign(1, fibers::Meeting(blocks * threads));
  std::fill(std::begin(has_arrived), std::end(has_arrived), false);
  has_lost_turn = false;
  run_clusters<kKernel>(blocks, clusters * blocks, threads, args...);
  if (has_lost_turn) throw std::logic_error("a thread must arrive at its cluster, wait, and so on");
}

}  // namespace
}  // namespace catena::gpu
