// Contiguous rows that the blocks of a cluster share, with a gamma for each element. A block goes
// through the same piece of some rows: several rows ahead are on their way to shared memory, where
// each thread reads only what it has asked for itself. While the blocks tell one another their sums
// of a row, they write the results of the row before.
#pragma once

#include "backends/cuda/common/async_copy.cuh"
#include "backends/cuda/common/cluster.cuh"
#include "backends/cuda/common/named_barrier.cuh"
#include "backends/cuda/common/pairs.cuh"
#include "backends/cuda/normalization/plain_rows.cuh"

namespace catena::gpu {
namespace {

#ifndef CATENA_CLUSTER_THREADS
#define CATENA_CLUSTER_THREADS 512
#endif
constexpr int kClusterThreads = CATENA_CLUSTER_THREADS;
#ifndef CATENA_CLUSTER_MEMORY
#define CATENA_CLUSTER_MEMORY (227 << 10)
#endif
constexpr size_t kClusterMemory = CATENA_CLUSTER_MEMORY;  // of a multiprocessor
constexpr int kMostBlocks = 16, kMostClusterWarps = 32;   // of a cluster, of a block

// What warps of a block and blocks of a cluster tell one another.
constexpr int kTold = 3;
struct ClusterShared {
  float of_warps[kTold][kMostClusterWarps];
  float of_blocks[2][kMostBlocks][kTold + 1];
};
static_assert(sizeof(ClusterShared) % 16 == 0);  // packs follow

// The form of a kernel: threads of a block, and blocks of a multiprocessor, which share its memory.
template <int kThreads_, int kResident_ = 1>
struct ClusterForm {
  static constexpr int kThreads = kThreads_, kResident = kResident_;
  static constexpr int kColumns = 16;                                   // of a thread
  static constexpr int64_t kPiece = int64_t(kThreads) * kColumns;       // of a row, at most
  static constexpr size_t kMemory = kClusterMemory / kResident - 1024;  // CUDA takes the rest
  static constexpr int kMostDepth = 6;
  // Rows of some arrays that are in shared memory.
  template <class T, int kArrays>
  static constexpr int depth() {
    const size_t fit = (kMemory - sizeof(ClusterShared)) / (kPiece * sizeof(T) * kArrays);
    return fit < kMostDepth ? int(fit) : kMostDepth;
  }
  template <class T, int kArrays>
  static constexpr size_t bytes() {
    return sizeof(ClusterShared) + size_t(depth<T, kArrays>()) * kPiece * sizeof(T) * kArrays;
  }
};

// Whether rows are of the kind that clusters share, and too long for a block.
inline bool is_for_clusters(Float type, const RowNormalizationArgs& args) {
  return has_whole_packs(type, args) && !has_channel_rows(args) && args.channels > kMostElements;
}

// How rows are dealt out.
struct ClusterPlan {
  ClusterShape shape;
  int rows, row_packs, piece;  // piece: packs of a block
  int clusters;                // 0: there are none for such rows
};

// The fewest blocks that hold a row.
template <class F, class T, auto kKernel>
ClusterPlan plan_clusters(const RowNormalizationArgs& args, size_t bytes, const Launch& launch) {
  ClusterPlan plan{};
  ClusterShape& shape = plan.shape;
  shape = {0, 1, F::kThreads, bytes};
  for (; shape.blocks * F::kPiece < args.channels; ++shape.number) shape.blocks *= 2;
  if (shape.blocks > kMostBlocks) return plan;
  plan.rows = int(args.samples);
  plan.row_packs = int(args.channels / kPack<T>);
  plan.piece = (plan.row_packs - 1) / shape.blocks + 1;
  const int most = most_clusters<kKernel>(shape, launch);
  plan.clusters = plan.rows < most ? plan.rows : most;
  return plan;
}

// A thread's packs of the rows of its cluster.
template <class F, class T>
struct ClusterWalk {
  static constexpr int N = kPack<T>, kPacks = F::kColumns / N;
  int blocks, rank, row_packs, piece, rows, row, step, packs;  // packs: of the block
  __device__ explicit ClusterWalk(const ClusterPlan& p)
      : blocks(p.shape.blocks),
        rank(block_of_cluster()),
        row_packs(p.row_packs),
        piece(p.piece),
        rows(p.rows),
        row(int(blockIdx.x) / p.shape.blocks),
        step(p.clusters),
        packs(packs_of(rank)) {}
  __device__ bool more(int ahead = 0) const { return row + ahead * step < rows; }
  __device__ void next() { row += step; }
  __device__ bool has_pack(int i) const { return int(threadIdx.x) + i * F::kThreads < packs; }
  __device__ bool leads() const { return rank == 0 && threadIdx.x == 0; }
  __device__ int64_t first_column(int i) const {
    return (int64_t(rank) * piece + int(threadIdx.x) + i * F::kThreads) * N;
  }
  template <class P>
  __device__ P* at(P* base, int of_row, int i) const {
    return base + int64_t(of_row) * row_packs + rank * piece + int(threadIdx.x) + i * F::kThreads;
  }
  template <class P>
  __device__ void store(void* base, int i, const P& pack) const {
    if (has_pack(i)) *at(static_cast<P*>(base), row, i) = pack;
  }
  // Numbers of a block of the cluster, and of a warp of this block.
  __device__ float size_of(int block) const { return float(packs_of(block) * N); }
  __device__ float size_of_warp(int warp) const {
    int count = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int left = packs - i * F::kThreads - warp * 32;
      count += left < 0 ? 0 : left < 32 ? left : 32;
    }
    return float(count * N);
  }

 private:
  __device__ int packs_of(int block) const {
    const int left = row_packs - block * piece;
    return left < 0 ? 0 : left < piece ? left : piece;
  }
};

// A thread's packs of some rows of kArrays arrays.
template <class F, class T, int kArrays>
class RowRing {
 public:
  using Walk = ClusterWalk<F, T>;
  static constexpr int kPacks = Walk::kPacks, kDepth = F::template depth<T, kArrays>();
  static_assert(kDepth >= 1);
  __device__ RowRing(ClusterShared* shared, const Walk& walk)
      : first_(reinterpret_cast<Words*>(shared + 1) + threadIdx.x) {
    for (int p = 0; p < kArrays * kDepth * kPacks; ++p)
      if (!walk.has_pack(p % kPacks)) first_[p * F::kThreads] = {};
  }
  // Of the row that is so many steps ahead.
  __device__ Words& at(int array, int ahead, int i) const {
    int slot = slot_ + ahead;
    if (slot >= kDepth) slot -= kDepth;
    return first_[((array * kDepth + slot) * kPacks + i) * F::kThreads];
  }
  __device__ void ask(const Walk& walk, int array, const void* base, int ahead) const {
    if (!walk.more(ahead)) return;
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
      if (walk.has_pack(i))
        copy_ahead(&at(array, ahead % kDepth, i),
                   walk.at(static_cast<const Words*>(base), walk.row + ahead * walk.step, i));
  }
  __device__ void next() { slot_ = slot_ + 1 == kDepth ? 0 : slot_ + 1; }

 private:
  Words* first_;
  int slot_ = 0;  // of the row that is being taken
};

// gamma or beta of the thread's columns.
template <class F, class T>
__device__ void get_parameters(const RowParameter& parameter, float otherwise,
                               const ClusterWalk<F, T>& walk, float (&v)[F::kColumns]) {
  constexpr int N = kPack<T>;
#pragma unroll
  for (int i = 0; i < F::kColumns / N; ++i) {
    float of_pack[N];
#pragma unroll
    for (int k = 0; k < N; ++k) of_pack[k] = otherwise;
    if (parameter.data != nullptr && walk.has_pack(i))
      load_parameters<T>(parameter, walk.first_column(i), of_pack);
#pragma unroll
    for (int k = 0; k < N; ++k) v[i * N + k] = of_pack[k];
  }
}

// What the warps of a block and then the blocks of a cluster tell one another about a row. A thread
// that tells of a next row has heard of the one before, and so have all, whose numbers are in the
// other part of the memory.
template <class F>
class ClusterTalk {
 public:
  static constexpr int kWarps = F::kThreads / 32;
  __device__ ClusterTalk(ClusterShared* shared, int blocks)
      : shared_(*shared),
        blocks_(blocks),
        lane_(int(threadIdx.x) % 32),
        warp_(int(threadIdx.x) / 32) {}
  // `v`: of the warp, in all lanes. join(v) is called by the first warp, with those of a warp in
  // each lane, zeros where there is none, and leaves those of the block in all lanes.
  template <int kCount, class Join>
  __device__ void tell(int rank, float (&v)[kCount], Join join) {
    turn_ ^= 1;
    if (lane_ == 0)
#pragma unroll
      for (int k = 0; k < kCount; ++k) shared_.of_warps[k][warp_] = v[k];
    if (warp_ > 0) {
      arrive(1, F::kThreads);
    } else {
      meet(1, F::kThreads);
#pragma unroll
      for (int k = 0; k < kCount; ++k) v[k] = lane_ < kWarps ? shared_.of_warps[k][lane_] : 0.0f;
      join(v);
      if (lane_ < blocks_)
#pragma unroll
        for (int k = 0; k < kCount; ++k)
          store_in_block(&shared_.of_blocks[turn_][rank][k], lane_, v[k]);
      __syncwarp();
    }
    arrive_at_cluster();
  }
  // What the block of the thread's lane has told; blocks follow one another over the lanes.
  template <int kCount>
  __device__ void hear(float (&v)[kCount]) const {
    wait_for_cluster();
#pragma unroll
    for (int k = 0; k < kCount; ++k) v[k] = shared_.of_blocks[turn_][lane_ & (blocks_ - 1)][k];
  }

 private:
  ClusterShared& shared_;
  int blocks_, lane_, warp_, turn_ = 0;
};

}  // namespace
}  // namespace catena::gpu
