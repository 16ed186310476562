// Plain rows: contiguous, with a gamma for each element, and short enough for the registers of a
// block. A power of two of threads takes a row, each some of its packs of 16 bytes, and goes on to
// the next row with the same elements: their gamma and beta stay in registers, and the next row is
// on its way while this one is summed.
#pragma once

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

#ifndef CATENA_PLAIN_THREADS
#define CATENA_PLAIN_THREADS 512
#endif
constexpr int kPlainThreads = CATENA_PLAIN_THREADS;  // at most, of a row and of a block
constexpr int kPlainWarps = kPlainThreads / 32;

// How rows are dealt out.
struct PlainPlan {
  int row_packs, members, block;
  unsigned blocks;
};

// `packs`: of a thread. `threads`: of a block, unless a row needs more. As many blocks as run at a
// time take all rows.
inline PlainPlan plan_plain_rows(const RowNormalizationArgs& args, int pack, int packs, int threads,
                                 const Launch& launch) {
  PlainPlan p{};
  p.row_packs = int(args.channels / pack);
  p.members = power_of_two_from((p.row_packs + packs - 1) / packs, kPlainThreads);
  p.block = p.members > threads ? p.members : threads;
  const int64_t groups = p.block / p.members, wanted = (args.samples + groups - 1) / groups;
  const int64_t most = int64_t(launch.multiprocessors) * (kPlainThreads / p.block);
  p.blocks = unsigned(wanted < most ? wanted : most);
  return p;
}

// The rows of the threads that share one. All threads of a block go on as long as one of them has a
// row, for they meet.
struct PlainWalk {
  int members, lane, row_packs;
  int64_t rows, first, row, step;  // first: of the block
  __device__ PlainWalk(int64_t rows, const PlainPlan& p)
      : members(p.members),
        lane(int(threadIdx.x) & (p.members - 1)),
        row_packs(p.row_packs),
        rows(rows),
        first(int64_t(blockIdx.x) * (p.block / p.members)),
        row(first + int(threadIdx.x) / p.members),
        step(int64_t(p.blocks) * (p.block / p.members)) {}
  __device__ bool more() const { return first < rows; }
  __device__ void next() {
    first += step;
    row += step;
  }
  __device__ bool has_row(int ahead = 0) const { return row + ahead * step < rows; }
  // Whether the row has the thread's pack i, which is this one of the row.
  __device__ bool has_pack(int i) const { return pack(i) < row_packs; }
  __device__ int pack(int i) const { return lane + i * members; }

  // The thread's packs of the row that is so many steps ahead; zeros where there is none.
  template <class T, int N, int kPacks>
  __device__ void load(const void* base, int ahead, Pack<T, N> (&packs)[kPacks]) const {
    const auto* from =
        static_cast<const Pack<T, N>*>(base) + (row + ahead * step) * row_packs + lane;
    const bool active = has_row(ahead);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      packs[i] = {};
      if (active && has_pack(i)) packs[i] = from[i * members];
    }
  }
  template <class T, int N>
  __device__ void store(void* base, int i, const Pack<T, N>& pack) const {
    if (!has_row() || !has_pack(i)) return;
    static_cast<Pack<T, N>*>(base)[row * row_packs + this->pack(i)] = pack;
  }
  // gamma or beta of the thread's elements, in packs of N.
  template <int N, class C, int kElements>
  __device__ void load_parameters(const void* base, C otherwise, C (&v)[kElements]) const {
#pragma unroll
    for (int e = 0; e < kElements; ++e) v[e] = otherwise;
    if (base == nullptr) return;
    constexpr int M = kPack<C>;
#pragma unroll
    for (int e = 0; e < kElements; e += M) {
      if (!has_pack(e / N)) continue;
      const auto p = load_pack<C, M>(base, (pack(e / N) * N + e % N) / M);
#pragma unroll
      for (int k = 0; k < M; ++k) v[e + k] = p.v[k];
    }
  }
};

// Sums over the threads of a row. All threads of the block call it.
template <class C>
struct RowTotals {
  static constexpr int kNumbers = 2;
  using Memory = C[2][kNumbers][kPlainWarps];
  Memory& shared;
  int members;
  // Calls use the two parts of the memory in turn: who writes to one has met, since it was read,
  // all of its readers.
  int turn = 0;
  __device__ RowTotals(Memory& shared, int members) : shared(shared), members(members) {}

  // All threads of a row get the same bits, since each adds the same pairs.
  template <int kCount>
  __device__ void sum(C (&v)[kNumbers]) {
    add_lanes<kCount, 16>(v, members);
    if (members <= 32) return;
    auto& numbers = shared[turn];
    turn ^= 1;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, warps = members / 32;
    if (lane == 0)
#pragma unroll
      for (int k = 0; k < kCount; ++k) numbers[k][warp] = v[k];
    __syncthreads();
    const int from = (warp & ~(warps - 1)) + (lane & (warps - 1));
#pragma unroll
    for (int k = 0; k < kCount; ++k) v[k] = numbers[k][from];
    add_lanes<kCount, kPlainWarps / 2>(v, warps);
  }

 private:
  template <int kCount, int kFirst>
  static __device__ void add_lanes(C (&v)[kNumbers], int lanes) {
#pragma unroll
    for (int offset = kFirst; offset > 0; offset /= 2) {
      if (offset >= lanes) continue;
#pragma unroll
      for (int k = 0; k < kCount; ++k) v[k] += __shfl_xor_sync(kAllLanes, v[k], offset);
    }
  }
};

}  // namespace
}  // namespace catena::gpu
