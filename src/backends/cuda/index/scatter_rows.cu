// Adds slices to the rows of a matrix in any order. The numbers of the slices of each row are first
// listed side by side: a counting sort in which equal positions come in any order. Then each row is
// summed in registers and written once.
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/index/indexing.h"
#include "backends/cuda/index/positions.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kCrowded = 64;  // more slices than this are shared by a block

// Parts of the scratch memory. Slices of row p: order[begins[p]] and the counts[p] - 1 numbers
// after it.
struct RowLists {
  uint32_t *counts, *used;  // `used`: entries of `order` that belong to a row already
  uint32_t *begins, *order;
  uint32_t* ranks;  // of each slice among those of its row

  RowLists(uint32_t* scratch, int64_t rows, int64_t count)
      : counts(scratch),
        used(counts + rows),
        begins(used + 1),
        order(begins + rows),
        ranks(order + count) {}
};

// Lists -------------------------------------------------------------------------------------------

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
  launch_kernel<count_kernel<I>>(blocks, kThreads, launch, positions, rows, lists);
  launch_kernel<begin_kernel>(loop_blocks(rows, kThreads, launch), kThreads, launch, rows, lists);
  launch_kernel<order_kernel<I>>(blocks, kThreads, launch, positions, rows, lists);
}

// Sums --------------------------------------------------------------------------------------------

// The sums of a warp over a chunk of a row: 128 bytes a lane. Pack q * 32 + lane belongs to the
// lane.
template <class T>
struct RowSums {
  using C = Compute<T>;
  using Unit = Pack<T, kPack<T>>;
  static constexpr int kSums = 128 / int(sizeof(C)), kPacks = kSums / kPack<T>;
  static constexpr int kChunk = 32 * kPacks;  // packs
  C sums[kSums];
  int lane, width;  // packs of this chunk

  __device__ RowSums(int64_t packs, int64_t first)
      : lane(threadIdx.x % 32), width(int(packs - first < kChunk ? packs - first : kChunk)) {
#pragma unroll
    for (int k = 0; k < kSums; ++k) sums[k] = C(0);
  }
  __device__ bool valid(int q) const { return q * 32 + lane < width; }
  __device__ void add(const Unit* from) {
    Unit loaded[kPacks];
#pragma unroll
    for (int q = 0; q < kPacks; ++q)
      if (valid(q)) loaded[q] = from[q * 32 + lane];
#pragma unroll
    for (int q = 0; q < kPacks; ++q) {
      if (!valid(q)) continue;
#pragma unroll
      for (int e = 0; e < kPack<T>; ++e) sums[q * kPack<T> + e] += widen(loaded[q].v[e]);
    }
  }
  __device__ void store(Unit* to) const {
#pragma unroll
    for (int q = 0; q < kPacks; ++q) {
      if (!valid(q)) continue;
      Unit unit;
#pragma unroll
      for (int e = 0; e < kPack<T>; ++e) unit.v[e] = Narrow<T>::from(sums[q * kPack<T> + e]);
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

template <class T>
struct RowsArgs {
  using Unit = typename RowSums<T>::Unit;
  Unit* target;
  const Unit* values;
  int64_t rows, packs;  // of a row
  bool accumulate;
  RowLists lists;
};

// Adds slice first, first + step, ... of a row's list.
template <class T>
__device__ void add_slices(RowSums<T>& sums, const RowsArgs<T>& args, int64_t chunk, uint32_t begin,
                           uint32_t count, uint32_t first, uint32_t step) {
  for (uint32_t start = first; start < count; start += 32 * step) {
    const uint32_t mine = start + sums.lane * step;
    const uint32_t number = mine < count ? args.lists.order[begin + mine] : 0;
    const uint32_t left = (count - start + step - 1) / step;
    const int n = left < 32 ? int(left) : 32;
    for (int r = 0; r < n; ++r) {
      const int64_t slice = __shfl_sync(kAllLanes, number, r);
      sums.add(args.values + slice * args.packs + chunk);
    }
  }
}

// A warp for each row; those of many slices are left to the whole block, after the others.
template <class T>
__global__ void __launch_bounds__(kThreads) sum_rows_kernel(RowsArgs<T> args) {
  wait_for_previous_kernel();
  using Sums = RowSums<T>;
  __shared__ typename Sums::C shared[Sums::kSums * 32];
  const int64_t block_row = int64_t(blockIdx.x) * kWarps, row = block_row + threadIdx.x / 32;
  const uint32_t count = row < args.rows ? args.lists.counts[row] : 0;
  const bool crowded = count > kCrowded;
  if (row < args.rows && !crowded && (count > 0 || !args.accumulate)) {
    const uint32_t begin = args.lists.begins[row];
    for (int64_t chunk = 0; chunk < args.packs; chunk += Sums::kChunk) {
      Sums sums(args.packs, chunk);
      if (args.accumulate) sums.add(args.target + row * args.packs + chunk);
      add_slices(sums, args, chunk, begin, count, 0, 1);
      sums.store(args.target + row * args.packs + chunk);
    }
  }
  if (!__syncthreads_or(crowded)) return;
  for (int w = 0; w < kWarps && block_row + w < args.rows; ++w) {
    const uint32_t shared_count = args.lists.counts[block_row + w];
    if (shared_count <= kCrowded) continue;
    const uint32_t begin = args.lists.begins[block_row + w];
    for (int64_t chunk = 0; chunk < args.packs; chunk += Sums::kChunk) {
      typename Sums::Unit* to = args.target + (block_row + w) * args.packs + chunk;
      Sums sums(args.packs, chunk);
      if (args.accumulate && threadIdx.x < 32) sums.add(to);
      add_slices(sums, args, chunk, begin, shared_count, threadIdx.x / 32, kWarps);
      sums.combine(shared);
      if (threadIdx.x < 32) sums.store(to);
    }
  }
}

template <class T>
void launch_sums(bool accumulate, const ScatterArgs& args, const RowLists& lists,
                 const Launch& launch) {
  using Unit = typename RowSums<T>::Unit;
  const RowsArgs<T> rows{static_cast<Unit*>(args.target),
                         static_cast<const Unit*>(args.values),
                         args.extent,
                         args.inner / kPack<T>,
                         accumulate,
                         lists};
  const unsigned blocks = unsigned((args.extent + kWarps - 1) / kWarps);
  launch_kernel<sum_rows_kernel<T>>(blocks, kThreads, launch, rows);
}

}  // namespace

int64_t row_list_words(const ScatterArgs& args) {
  return 2 * args.extent + 1 + 2 * args.positions.count;
}

void launch_scatter_rows(ScatterType type, bool accumulate, const ScatterArgs& args,
                         uint32_t* scratch, const Launch& launch) {
  const RowLists lists(scratch, args.extent, args.positions.count);
  // An error stays for check_launch().
  cudaMemsetAsync(lists.counts, 0, size_t(args.extent + 1) * sizeof(uint32_t), launch.stream);
  if (args.positions.wide)
    launch_lists<int64_t>(args.positions, args.extent, lists, launch);
  else
    launch_lists<int32_t>(args.positions, args.extent, lists, launch);
  switch (type) {
    case ScatterType::kF16:
      return launch_sums<__half>(accumulate, args, lists, launch);
    case ScatterType::kBf16:
      return launch_sums<__nv_bfloat16>(accumulate, args, lists, launch);
    case ScatterType::kF32:
      return launch_sums<float>(accumulate, args, lists, launch);
    case ScatterType::kF64:
      return launch_sums<double>(accumulate, args, lists, launch);
    default:
      return;  // floats only
  }
}

}  // namespace catena::gpu
