// Adds slices to the rows of a matrix in any order. The numbers of the slices of each row are first
// listed side by side: a counting sort in which equal positions come in any order. Then each row is
// summed in registers and written once. A warp takes a few rows, so that it waits for their lists
// once; rows of many slices are shared out over all blocks.
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/index/indexing.h"
#include "backends/cuda/index/positions.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRowsOfWarp = 4, kRowsOfBlock = kRowsOfWarp * kWarps;
constexpr uint32_t kCrowded = 64;  // more slices than this are shared by a block

// Parts of the scratch memory. Slices of row p: order[begins[p]] and the counts[p] - 1 numbers
// after it.
struct RowLists {
  uint32_t *counts, *used;  // `used`: entries of `order` that belong to a row already
  uint32_t* crowded_count;
  uint32_t *begins, *order;
  uint32_t* ranks;    // of each slice among those of its row
  uint32_t* crowded;  // rows of more than kCrowded slices

  RowLists(uint32_t* scratch, int64_t rows, int64_t count)
      : counts(scratch),
        used(counts + rows),
        crowded_count(used + 1),
        begins(crowded_count + 1),
        order(begins + rows),
        ranks(order + count),
        crowded(ranks + count) {}
  static int64_t words(int64_t rows, int64_t count) {
    return 2 * rows + 2 + 2 * count + count / (kCrowded + 1);
  }
};

// Lists -------------------------------------------------------------------------------------------

// The counters: those of the rows and the two behind them. A kernel, as launches after another kind
// of work do not start early.
__global__ void clear_kernel(int64_t rows, RowLists lists) {
  wait_for_previous_kernel();
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < rows + 2;
       i += int64_t(gridDim.x) * kThreads)
    lists.counts[i] = 0;
}

template <class I>
__global__ void count_kernel(Positions positions, int64_t rows, RowLists lists) {
  wait_for_previous_kernel();
  const I* data = static_cast<const I*>(positions.data);
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < positions.count;
       i += int64_t(gridDim.x) * kThreads) {
    const int64_t p = resolve(data[i], rows, positions);
    if (p >= 0) lists.ranks[i] = atomicAdd(lists.counts + p, 1u);
  }
}

// Lists follow each other in the order in which warps arrive.
__global__ void begin_kernel(int64_t rows, RowLists lists) {
  wait_for_previous_kernel();
  const int lane = threadIdx.x % 32;
  for (int64_t first = int64_t(blockIdx.x) * kThreads + threadIdx.x - lane; first < rows;
       first += int64_t(gridDim.x) * kThreads) {
    const int64_t row = first + lane;
    const uint32_t own = row < rows ? lists.counts[row] : 0;
    uint32_t end = own;  // sum over the lanes up to this one
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const uint32_t before = __shfl_up_sync(kAllLanes, end, offset);
      if (lane >= offset) end += before;
    }
    uint32_t base = 0;
    if (lane == 31 && end > 0) base = atomicAdd(lists.used, end);
    base = __shfl_sync(kAllLanes, base, 31);
    if (row < rows) lists.begins[row] = base + end - own;
    if (own > kCrowded) lists.crowded[atomicAdd(lists.crowded_count, 1u)] = uint32_t(row);
  }
}

template <class I>
__global__ void order_kernel(Positions positions, int64_t rows, RowLists lists) {
  wait_for_previous_kernel();
  const I* data = static_cast<const I*>(positions.data);
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < positions.count;
       i += int64_t(gridDim.x) * kThreads) {
    const int64_t p = resolve(data[i], rows, positions);
    if (p >= 0) lists.order[lists.begins[p] + lists.ranks[i]] = uint32_t(i);
  }
}

template <class I>
void launch_lists(const Positions& positions, int64_t rows, const RowLists& lists,
                  const Launch& launch) {
  const unsigned blocks = loop_blocks(positions.count, kThreads, launch);
  launch_kernel<clear_kernel>(loop_blocks(rows + 2, kThreads, launch), kThreads, launch, rows,
                              lists);
  launch_kernel<count_kernel<I>>(blocks, kThreads, launch, positions, rows, lists);
  launch_kernel<begin_kernel>(loop_blocks(rows, kThreads, launch), kThreads, launch, rows, lists);
  launch_kernel<order_kernel<I>>(blocks, kThreads, launch, positions, rows, lists);
}

// Sums --------------------------------------------------------------------------------------------

// The sums of a warp over a chunk of a row: two packs of values a lane. Pack q * 32 + lane belongs
// to the lane. V: the type of the values, whose packs the target's are as long as.
template <class T, class V>
struct RowSums {
  using C = Compute<T>;
  static constexpr int kNumbers = kPack<V>;
  using Unit = Pack<T, kNumbers>;
  using Values = Pack<V, kNumbers>;
  static constexpr int kPacks = 2, kSums = kPacks * kNumbers;
  static constexpr int kChunk = 32 * kPacks;  // packs
  C sums[kSums];
  int lane, width;  // packs of this chunk

  __device__ RowSums(int64_t packs, int64_t first)
      : lane(threadIdx.x % 32), width(int(packs - first < kChunk ? packs - first : kChunk)) {
#pragma unroll
    for (int k = 0; k < kSums; ++k) sums[k] = C(0);
  }
  __device__ bool valid(int q) const { return q * 32 + lane < width; }
  template <class Given>  // Unit or Values
  __device__ void add(const Given* from) {
    Given loaded[kPacks];
#pragma unroll
    for (int q = 0; q < kPacks; ++q)
      if (valid(q)) loaded[q] = from[q * 32 + lane];
#pragma unroll
    for (int q = 0; q < kPacks; ++q) {
      if (!valid(q)) continue;
#pragma unroll
      for (int e = 0; e < kNumbers; ++e) sums[q * kNumbers + e] += widen(loaded[q].v[e]);
    }
  }
  __device__ void store(Unit* to) const {
#pragma unroll
    for (int q = 0; q < kPacks; ++q) {
      if (!valid(q)) continue;
      Unit unit;
#pragma unroll
      for (int e = 0; e < kNumbers; ++e) unit.v[e] = Narrow<T>::from(sums[q * kNumbers + e]);
      to[q * 32 + lane] = unit;
    }
  }
  // Adds the sums of the block's warps; warp 0 has the total. All threads take part.
  __device__ void combine(C* shared) {
    const int warp = threadIdx.x / 32;
    for (int w = kWarps - 1; w >= 0; --w) {
      if (warp == w) {
#pragma unroll
        for (int k = 0; k < kSums; ++k) {
          if (w < kWarps - 1) sums[k] += shared[k * 32 + lane];
          shared[k * 32 + lane] = sums[k];
        }
      }
      __syncthreads();
    }
  }
};

template <class T, class V>
struct RowsArgs {
  using Unit = typename RowSums<T, V>::Unit;
  using Values = typename RowSums<T, V>::Values;
  Unit* target;
  const Values* values;
  int64_t rows, packs;  // of a row
  uint32_t chunks;      // of a row
  bool accumulate;
  RowLists lists;
};

// Adds slice first, first + step, ... of a row's list.
template <class T, class V>
__device__ void add_slices(RowSums<T, V>& sums, const RowsArgs<T, V>& args, int64_t chunk,
                           uint32_t begin, uint32_t count, uint32_t first, uint32_t step) {
  for (uint32_t start = first; start < count; start += 32 * step) {
    const uint32_t mine = start + sums.lane * step;
    const uint32_t number = mine < count ? args.lists.order[begin + mine] : 0;
    const uint32_t left = (count - start + step - 1) / step;
    const int n = left < 32 ? int(left) : 32;
#pragma unroll 2
    for (int r = 0; r < n; ++r) {
      const int64_t slice = __shfl_sync(kAllLanes, number, r);
      sums.add(args.values + slice * args.packs + chunk);
    }
  }
}

// The lists of the rows of a warp, one in each of the first lanes.
struct OwnLists {
  uint32_t count = 0, begin = 0, slice = 0;  // `slice`: the first one of the list

  __device__ OwnLists(const RowLists& lists, int64_t first_row, int64_t rows) {
    const int lane = threadIdx.x % 32;
    const int64_t row = first_row + lane;
    if (lane >= kRowsOfWarp || row >= rows) return;
    count = lists.counts[row];
    begin = lists.begins[row];
    if (count > 0) slice = lists.order[begin];
  }
};

// One chunk of the rows of a warp, except crowded ones.
template <class T, class V>
__device__ void sum_own_rows(const RowsArgs<T, V>& args, const OwnLists& own, int64_t first_row,
                             int64_t chunk) {
#pragma unroll 1
  for (int r = 0; r < kRowsOfWarp && first_row + r < args.rows; ++r) {
    const uint32_t count = __shfl_sync(kAllLanes, own.count, r);
    if (count > kCrowded || (count == 0 && args.accumulate)) continue;
    typename RowSums<T, V>::Unit* to = args.target + (first_row + r) * args.packs + chunk;
    RowSums<T, V> sums(args.packs, chunk);
    if (args.accumulate) sums.add(to);
    if (count > 0) {
      const int64_t slice = __shfl_sync(kAllLanes, own.slice, r);
      sums.add(args.values + slice * args.packs + chunk);
      const uint32_t begin = __shfl_sync(kAllLanes, own.begin, r);
      add_slices(sums, args, chunk, begin, count, 1, 1);
    }
    sums.store(to);
  }
}

// The block's share of the chunks of crowded rows: each warp adds some of the slices.
template <class T, class V>
__device__ void sum_crowded_rows(const RowsArgs<T, V>& args) {
  using Sums = RowSums<T, V>;
  __shared__ typename Sums::C shared[Sums::kSums * 32];
  const int64_t items = int64_t(*args.lists.crowded_count) * args.chunks;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t row = args.lists.crowded[item / args.chunks],
                  chunk = item % args.chunks * Sums::kChunk;
    typename Sums::Unit* to = args.target + row * args.packs + chunk;
    Sums sums(args.packs, chunk);
    if (args.accumulate && threadIdx.x < 32) sums.add(to);
    add_slices(sums, args, chunk, args.lists.begins[row], args.lists.counts[row], threadIdx.x / 32,
               kWarps);
    sums.combine(shared);
    if (threadIdx.x < 32) sums.store(to);
  }
}

// A block takes one chunk of kRowsOfBlock rows. Crowded rows first, as they take longest.
template <class T, class V>
__global__ void __launch_bounds__(kThreads, 4) sum_rows_kernel(RowsArgs<T, V> args) {
  wait_for_previous_kernel();
  const int64_t first_row =
      int64_t(blockIdx.x / args.chunks) * kRowsOfBlock + int64_t(threadIdx.x / 32) * kRowsOfWarp;
  const int64_t chunk = int64_t(blockIdx.x % args.chunks) * RowSums<T, V>::kChunk;
  const OwnLists own(args.lists, first_row, args.rows);
  sum_crowded_rows(args);
  sum_own_rows(args, own, first_row, chunk);
}

template <class T, class V = T>
void launch_sums(bool accumulate, const ScatterArgs& args, const RowLists& lists,
                 const Launch& launch) {
  using Sums = RowSums<T, V>;
  const int64_t packs = args.inner / Sums::kNumbers,
                chunks = (packs + Sums::kChunk - 1) / Sums::kChunk;
  const RowsArgs<T, V> rows{static_cast<typename Sums::Unit*>(args.target),
                            static_cast<const typename Sums::Values*>(args.values),
                            args.extent,
                            packs,
                            uint32_t(chunks),
                            accumulate,
                            lists};
  const int64_t blocks = (args.extent + kRowsOfBlock - 1) / kRowsOfBlock * chunks;
  launch_kernel<sum_rows_kernel<T, V>>(unsigned(blocks), kThreads, launch, rows);
}

}  // namespace

int64_t row_list_words(const ScatterArgs& args) {
  return RowLists::words(args.extent, args.positions.count);
}

void launch_scatter_rows(const ScatterTypes& types, bool accumulate, const ScatterArgs& args,
                         uint32_t* scratch, const Launch& launch) {
  const RowLists lists(scratch, args.extent, args.positions.count);
  if (args.positions.wide)
    launch_lists<int64_t>(args.positions, args.extent, lists, launch);
  else
    launch_lists<int32_t>(args.positions, args.extent, lists, launch);
  if (types.widens()) {
    return types.values == Element::kFloat16
               ? launch_sums<float, __half>(accumulate, args, lists, launch)
               : launch_sums<float, __nv_bfloat16>(accumulate, args, lists, launch);
  }
  switch (types.target) {
    case Element::kFloat16: return launch_sums<__half>(accumulate, args, lists, launch);
    case Element::kBFloat16: return launch_sums<__nv_bfloat16>(accumulate, args, lists, launch);
    case Element::kFloat32: return launch_sums<float>(accumulate, args, lists, launch);
    case Element::kFloat64: return launch_sums<double>(accumulate, args, lists, launch);
    default: return;  // floats only
  }
}

}  // namespace catena::gpu
