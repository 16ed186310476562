// Rows of several channels with many adjacent numbers each, as groups of images with channels first
// have them, that fit the shared memory of a block: they are read from memory once. While a block
// writes the results of a row, it already copies its next row into the places that become free.
//
// A block's threads form teams, each of a power of two of threads. A team takes a channel at a
// time, so that sums over channels are sums over teams. A thread reads only what it has copied
// itself.
#pragma once

#include "backends/cuda/common/async_copy.cuh"
#include "backends/cuda/common/dynamic_shared.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

#ifndef CATENA_KEPT_THREADS
#define CATENA_KEPT_THREADS 512
#endif
constexpr int kKeptThreads = CATENA_KEPT_THREADS;  // of a block, at most
constexpr int kLeastKeptThreads = 64;
constexpr int kPacksOfThread = 8;           // that are wanted, so that a thread has work
constexpr int kLeastKeptPacks = 128;        // of a row: with fewer ones most threads would wait
constexpr int kResidentThreads = 1024;      // of a multiprocessor: what 64 registers a thread allow
constexpr int kReservedShared = 1024;       // bytes that each block takes beside its own
constexpr int64_t kMostKeptRows = 1 << 30;  // so that their numbers are ints

// How a block takes a row: each team takes `rounds` channels, of each of which a thread has `depth`
// packs at most.
struct KeptPlan {
  int rows, channels, channel_packs;  // channels: of a row
  int block, team, rounds, depth;
  unsigned blocks;
  int64_t bytes;

  // Places for packs of a block, of each array.
  __host__ __device__ int places() const { return rounds * depth * block; }
  // Warps of a team that is larger than a warp.
  __host__ __device__ int warps_of_team() const { return team > 32 ? team / 32 : 1; }

  // The teams of which a block has the fewest places for packs.
  void choose_team(int threads) {
    block = threads;
    int64_t fewest = 0;
    for (int size = threads; size >= 1; size /= 2) {
      const int64_t teams = threads / size, turns = (channels + teams - 1) / teams,
                    packs = (channel_packs + size - 1) / size;
      if (fewest > 0 && turns * packs >= fewest) continue;
      fewest = turns * packs;
      team = size;
      rounds = int(turns);
      depth = int(packs);
    }
  }
};

// Elements of a pack: the most that a channel's runs fill.
template <class T>
int kept_pack(const RowNormalizationArgs& args) {
  if (args.aligned && args.inner % kPack<T> == 0) return kPack<T>;
  return args.aligned && args.inner % kColumnPack<T> == 0 ? kColumnPack<T> : 1;
}

// The plan for rows of which `arrays` arrays are kept, beside numbers of the compute type: so many
// of the block and so many of each channel and warp of a team. It has no block where the rows are
// not such ones.
template <class T>
KeptPlan plan_kept_rows(const RowNormalizationArgs& args, int arrays, int of_block, int of_channel,
                        const Launch& launch) {
  KeptPlan plan{};
  const int64_t rows = args.samples * args.groups, channels = args.channels / args.groups;
  const int pack = kept_pack<T>(args);
  const int64_t packs = channels * (args.inner / pack);
  if (args.parts > 1 || args.positions != 1 || args.inner == 1 || rows > kMostKeptRows ||
      packs < kLeastKeptPacks || packs * pack * int64_t(sizeof(T)) * arrays > args.shared_memory)
    return plan;
  plan.rows = int(rows);
  plan.channels = int(channels);
  plan.channel_packs = int(args.inner / pack);
  int threads = kKeptThreads;
  while (threads > kLeastKeptThreads && packs <= int64_t(threads / 2) * kPacksOfThread)
    threads /= 2;
  for (; threads >= kLeastKeptThreads; threads /= 2) {
    plan.choose_team(threads);
    plan.bytes =
        int64_t(plan.places()) * pack * int64_t(sizeof(T)) * arrays +
        (of_block + channels * plan.warps_of_team() * of_channel) * int64_t(sizeof(Compute<T>));
    if (plan.bytes > args.shared_memory) continue;
    const int64_t fitting = (args.shared_memory + kReservedShared) / (plan.bytes + kReservedShared),
                  running =
                      fitting < kResidentThreads / threads ? fitting : kResidentThreads / threads,
                  most = running * launch.multiprocessors;
    plan.blocks = unsigned(rows < most ? rows : most);
    return plan;
  }
  return {};
}

// What a thread has of its block's rows.
template <class T, int N>
class KeptWalk {
 public:
  using P = Pack<T, N>;
  __device__ explicit KeptWalk(const KeptPlan& plan)
      : plan_(plan),
        team_(int(threadIdx.x) / plan.team),
        teams_(plan.block / plan.team),
        lane_(int(threadIdx.x) & (plan.team - 1)) {}

  __device__ int channel(int round) const { return team_ + round * teams_; }
  __device__ bool has_channel(int round) const { return channel(round) < plan_.channels; }
  __device__ int lane() const { return lane_; }
  // Calls visit(place, pack) for the thread's packs of the round: their places in shared memory,
  // and in the row.
  template <class F>
  __device__ void each(int round, F visit) const {
    if (!has_channel(round)) return;
    const int first = channel(round) * plan_.channel_packs;
    int place = round * plan_.depth * plan_.block + int(threadIdx.x);
#pragma unroll 4
    for (int i = lane_; i < plan_.channel_packs; i += plan_.team) {
      visit(place, first + i);
      place += plan_.block;
    }
  }
  template <class F>
  __device__ void each(F visit) const {
    for (int round = 0; round < plan_.rounds; ++round) each(round, visit);
  }
  // Packs of a row in memory.
  __device__ const P* packs(const void* base, int row) const {
    return static_cast<const P*>(base) + offset(row);
  }
  __device__ P* packs(void* base, int row) const { return static_cast<P*>(base) + offset(row); }

 private:
  __device__ int64_t offset(int row) const {
    return int64_t(row) * plan_.channels * plan_.channel_packs;
  }
  const KeptPlan& plan_;
  int team_, teams_, lane_;
};

}  // namespace
}  // namespace catena::gpu
