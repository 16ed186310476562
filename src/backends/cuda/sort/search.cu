// Searching in sorted arrays, and what is picked out of them.
#include "backends/cuda/sort/ordered.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

template <class O>
__global__ void search_kernel(SearchArgs args) {
  using U = typename O::U;
  const U *sorted = static_cast<const U*>(args.sorted),
          *values = static_cast<const U*>(args.values);
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < args.count;
       i += int64_t(gridDim.x) * kThreads) {
    const U key = O::rank(values[i]);
    int64_t low = 0, high = args.length;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const U at = O::rank(sorted[middle]);
      if (args.right ? at <= key : at < key)
        low = middle + 1;
      else
        high = middle;
    }
    args.output[i] = low;
  }
}

template <class O>
__global__ void run_starts_kernel(const typename O::U* sorted, int64_t count, bool* starts) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * kThreads)
    starts[i] = i == 0 || O::rank(sorted[i]) != O::rank(sorted[i - 1]);
}

template <class U>
__global__ void pick_kernel(PickArgs args) {
  const U* table = static_cast<const U*>(args.table);
  U* output = static_cast<U*>(args.output);
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < args.rows * args.ranks;
       i += int64_t(gridDim.x) * kThreads) {
    const int64_t row = i / args.ranks;
    const int j = int(i - row * args.ranks);
    output[row * args.output_columns + j] = table[row * args.columns + args.rank[j]];
  }
}

template <class U>
void pick(const PickArgs& args, const Launch& launch) {
  pick_kernel<U>
      <<<loop_blocks(args.rows * args.ranks, kThreads, launch), kThreads, 0, launch.stream>>>(args);
}

}  // namespace

void launch_search(Element order, const SearchArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks(args.count, kThreads, launch);
  CATENA_ORDER_SWITCH(order, search_kernel<O><<<blocks, kThreads, 0, launch.stream>>>(args));
}

void launch_run_starts(Element order, const void* sorted, int64_t count, bool* starts,
                       const Launch& launch) {
  const unsigned blocks = loop_blocks(count, kThreads, launch);
  CATENA_ORDER_SWITCH(order, run_starts_kernel<O><<<blocks, kThreads, 0, launch.stream>>>(
                                 static_cast<const typename O::U*>(sorted), count, starts));
}

void launch_pick(int bytes, const PickArgs& args, const Launch& launch) {
  switch (bytes) {
    case 1: return pick<uint8_t>(args, launch);
    case 2: return pick<uint16_t>(args, launch);
    case 4: return pick<uint32_t>(args, launch);
    default: return pick<uint64_t>(args, launch);
  }
}

}  // namespace catena::gpu
