// Stable sorting of short rows, all in one kernel: a bitonic network over the ranks of the elements
// and, for equal ranks, their positions. A thread has kItems adjacent entries in registers. The two
// entries of a pair are in one thread or in two lanes of a warp, or they are exchanged through
// shared memory.
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/sort/ordered.cuh"
#include "backends/cuda/sort/rank.cuh"

namespace catena::gpu {
namespace {

constexpr int kItems = 4;
constexpr int kMinThreads = 128, kMaxThreads = int(kShortRow / kItems);

// An entry, compared by rank, then by position in the row. Without branches, because neighbouring
// lanes would diverge.
template <bool kWide>
struct Entry {
  uint64_t key;  // rank and position
  static __device__ Entry of(uint32_t rank, uint32_t position) {
    return {uint64_t(rank) << 32 | position};
  }
  static __device__ Entry last() { return {~uint64_t(0)}; }
  __device__ bool before(const Entry& other) const { return key < other.key; }
  __device__ uint32_t position() const { return uint32_t(key); }
  __device__ void take_if(bool wanted, const Entry& other) { key = wanted ? other.key : key; }
  __device__ Entry of_lane(int mask) const { return {__shfl_xor_sync(kAllLanes, key, mask)}; }
};
template <>
struct Entry<true> {
  uint64_t rank;
  uint32_t place;
  static __device__ Entry of(uint64_t rank, uint32_t position) { return {rank, position}; }
  static __device__ Entry last() { return {~uint64_t(0), ~uint32_t(0)}; }
  __device__ bool before(const Entry& other) const {
    return (rank < other.rank) | ((rank == other.rank) & (place < other.place));
  }
  __device__ uint32_t position() const { return place; }
  __device__ void take_if(bool wanted, const Entry& other) {
    rank = wanted ? other.rank : rank;
    place = wanted ? other.place : place;
  }
  __device__ Entry of_lane(int mask) const {
    return {__shfl_xor_sync(kAllLanes, rank, mask), __shfl_xor_sync(kAllLanes, place, mask)};
  }
};

// The entries of a block: item r of thread t is number t * kItems + r. Every 2^shift of them are
// one row.
template <class E>
struct Network {
  E item[kItems];
  E* exchange;  // kItems * blockDim.x entries; item r of thread t is at r * blockDim.x + t
  int row_mask;

  // Whether item r comes before its partner, which is `apart` further on in the run being built.
  __device__ bool ascending(int r, int run) const {
    return ((int(threadIdx.x) * kItems + r) & row_mask & run) == 0;
  }
  __device__ void keep(int r, int run, bool lower, const E& other) {
    const bool smaller = lower == ascending(r, run);
    item[r].take_if(other.before(item[r]) == smaller, other);
  }

  template <int kApart>
  __device__ void in_thread(int run) {
#pragma unroll
    for (int r = 0; r < kItems; ++r) {
      if (r & kApart) continue;
      const E a = item[r], b = item[r + kApart];
      const bool swap = b.before(a) == ascending(r, run);
      item[r].take_if(swap, b);
      item[r + kApart].take_if(swap, a);
    }
  }
  __device__ void between_lanes(int mask, int run) {
    const bool lower = (int(threadIdx.x) & mask) == 0;
#pragma unroll
    for (int r = 0; r < kItems; ++r) keep(r, run, lower, item[r].of_lane(mask));
  }
  __device__ void put_items() {
#pragma unroll
    for (int r = 0; r < kItems; ++r) exchange[r * int(blockDim.x) + int(threadIdx.x)] = item[r];
  }
  __device__ void between_warps(int mask, int run) {
    put_items();
    __syncthreads();
    const bool lower = (int(threadIdx.x) & mask) == 0;
#pragma unroll
    for (int r = 0; r < kItems; ++r)
      keep(r, run, lower, exchange[r * int(blockDim.x) + (int(threadIdx.x) ^ mask)]);
    __syncthreads();
  }

  __device__ void sort() {
    for (int run = 2; run <= row_mask + 1; run *= 2) {
      int apart = run / 2;
      for (; apart >= 32 * kItems; apart /= 2) between_warps(apart / kItems, run);
      for (; apart >= kItems; apart /= 2) between_lanes(apart / kItems, run);
      if (apart == 2) in_thread<2>(run);
      in_thread<1>(run);
    }
  }
};

template <class U>
__global__ void __launch_bounds__(kMaxThreads)
    short_rows_kernel(Element order, SortPairsArgs args, int shift, U mask) {
  using E = Entry<sizeof(U) == 8>;
  extern __shared__ __align__(16) unsigned char memory[];
  const int threads = int(blockDim.x), all = kItems * threads, height = all >> shift;
  Network<E> network;
  network.exchange = reinterpret_cast<E*>(memory);
  network.row_mask = (1 << shift) - 1;
  const U* input = static_cast<const U*>(args.input);
  for (int64_t first = int64_t(blockIdx.x) * height; first < args.rows;
       first += int64_t(gridDim.x) * height) {
#pragma unroll
    for (int r = 0; r < kItems; ++r) {
      const int e = int(threadIdx.x) * kItems + r, column = e & network.row_mask;
      const int64_t row = first + (e >> shift);
      const bool valid = row < args.rows && column < args.columns;
      network.item[r] = valid ? E::of(U(rank_of(order, input[row * args.columns + column]) ^ mask),
                                      uint32_t(column))
                              : E::last();
    }
    network.sort();
    // Through shared memory, so that adjacent threads write adjacent elements.
    network.put_items();
    __syncthreads();
    for (int e = int(threadIdx.x); e < all; e += threads) {
      const int64_t row = first + (e >> shift);
      const int column = e & network.row_mask;
      if (row >= args.rows || column >= args.keep) continue;
      const int64_t from = int64_t(network.exchange[e % kItems * threads + e / kItems].position()),
                    to = row * args.keep + column;
      if (args.positions) args.positions[to] = from;
      if (args.values) static_cast<U*>(args.values)[to] = input[row * args.columns + from];
    }
    __syncthreads();
  }
}

template <class U>
void run(Element order, const SortPairsArgs& args, const Launch& launch) {
  int shift = 2;
  while ((int64_t(1) << shift) < args.columns) ++shift;
  const int width = 1 << shift,
            threads = width / kItems < kMinThreads ? kMinThreads : width / kItems;
  const unsigned blocks = loop_blocks(args.rows, kItems * threads / width, launch, 32);
  const size_t shared = size_t(kItems * threads) * sizeof(Entry<sizeof(U) == 8>);
  short_rows_kernel<U><<<blocks, unsigned(threads), shared, launch.stream>>>(
      order, args, shift, args.descending ? U(~U(0)) : U(0));
}

}  // namespace

void launch_sort_short(Element order, const SortPairsArgs& args, const Launch& launch) {
  switch (args.bytes) {
    case 1: return run<uint8_t>(order, args, launch);
    case 2: return run<uint16_t>(order, args, launch);
    case 4: return run<uint32_t>(order, args, launch);
    default: return run<uint64_t>(order, args, launch);
  }
}

}  // namespace catena::gpu
