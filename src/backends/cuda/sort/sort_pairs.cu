// Stable sorting of rows with the elements' positions: CUB's radix sort of keys with the row number
// in the high bits and the element's rank in the low bits. If both do not fit into 64 bits,
// elements are sorted by rank and then by row.
#include <cub/device/device_radix_sort.cuh>

#include "backends/cuda/sort/ordered.cuh"
#include "backends/cuda/sort/rank.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

int bits_for(int64_t count) {
  int bits = 0;
  while ((int64_t(1) << bits) < count) ++bits;
  return bits;
}

// How a call is executed, and the layout of its scratch memory: keys and indices twice, then CUB's.
struct Plan {
  int key_bits, row_bits;
  bool wide_key, wide_index, two_sorts;
  size_t column_keys, column_indices, library;
  size_t total() const { return 2 * column_keys + 2 * column_indices + library; }
};

size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class K, class I>
cudaError_t sort(void* scratch, size_t& bytes, cub::DoubleBuffer<K>& keys,
                 cub::DoubleBuffer<I>& indices, int64_t n, int bits, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, indices, n, 0, bits, stream);
}

template <class K, class I>
size_t library_bytes(int64_t n, int bits) {
  cub::DoubleBuffer<K> keys(nullptr, nullptr);
  cub::DoubleBuffer<I> indices(nullptr, nullptr);
  size_t bytes = 0;
  sort(nullptr, bytes, keys, indices, n, bits, nullptr);
  return bytes;
}

template <class I>
size_t library_bytes_for(const Plan& plan, int64_t n) {
  const int bits = plan.key_bits + (plan.two_sorts ? 0 : plan.row_bits);
  const size_t first =
      plan.wide_key ? library_bytes<uint64_t, I>(n, bits) : library_bytes<uint32_t, I>(n, bits);
  const size_t second = plan.two_sorts ? library_bytes<uint32_t, I>(n, plan.row_bits) : 0;
  return first > second ? first : second;
}

Plan plan_of(int bytes, int64_t rows, int64_t columns) {
  const int64_t n = rows * columns;
  Plan plan{};
  plan.key_bits = bytes * 8;
  plan.row_bits = bits_for(rows);
  plan.two_sorts = plan.key_bits + plan.row_bits > 64;
  plan.wide_key = plan.key_bits + (plan.two_sorts ? 0 : plan.row_bits) > 32;
  plan.wide_index = n >= int64_t(0xffffffff);
  plan.column_keys = aligned(size_t(n) * (plan.wide_key ? 8 : 4));
  plan.column_indices = aligned(size_t(n) * (plan.wide_index ? 8 : 4));
  plan.library =
      plan.wide_index ? library_bytes_for<uint64_t>(plan, n) : library_bytes_for<uint32_t>(plan, n);
  return plan;
}

// Keys and positions of all elements. A negative row_shift leaves out the row.
template <class U, class K, class I>
__global__ void prepare_kernel(Element order, const U* input, int64_t n, int64_t columns, U mask,
                               int row_shift, K* keys, I* indices) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kThreads) {
    K key = K(U(rank_of(order, input[i]) ^ mask));
    if (row_shift >= 0) key |= K(K(I(i) / I(columns)) << row_shift);
    keys[i] = key;
    indices[i] = I(i);
  }
}

template <class I>
__global__ void row_kernel(const I* indices, int64_t n, int64_t columns, uint32_t* rows) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kThreads)
    rows[i] = uint32_t(indices[i] / I(columns));
}

template <class U, class I>
__global__ void finish_kernel(const U* input, const I* indices, int64_t rows, int64_t columns,
                              int64_t keep, U* values, int64_t* positions) {
  for (int64_t o = int64_t(blockIdx.x) * kThreads + threadIdx.x; o < rows * keep;
       o += int64_t(gridDim.x) * kThreads) {
    const int64_t row = rows == 1 ? 0 : int64_t(I(o) / I(keep)), first = row * columns;
    const int64_t index = int64_t(indices[first + (o - row * keep)]);
    if (positions) positions[o] = index - first;
    if (values) values[o] = input[index];
  }
}

template <class U, class K, class I>
cudaError_t run(Element order, const SortPairsArgs& args, const Plan& plan, const Launch& launch) {
  const int64_t n = args.rows * args.columns;
  char* base = static_cast<char*>(args.scratch);
  char* second = base + 2 * plan.column_keys;
  void* library = second + 2 * plan.column_indices;
  cub::DoubleBuffer<K> keys(reinterpret_cast<K*>(base),
                            reinterpret_cast<K*>(base + plan.column_keys));
  cub::DoubleBuffer<I> indices(reinterpret_cast<I*>(second),
                               reinterpret_cast<I*>(second + plan.column_indices));
  const unsigned blocks = loop_blocks(n, kThreads, launch);
  const bool with_row = args.rows > 1 && !plan.two_sorts;
  prepare_kernel<U, K, I><<<blocks, kThreads, 0, launch.stream>>>(
      order, static_cast<const U*>(args.input), n, args.columns, args.descending ? U(~U(0)) : U(0),
      with_row ? plan.key_bits : -1, keys.Current(), indices.Current());
  size_t bytes = plan.library;
  cudaError_t error = sort(library, bytes, keys, indices, n,
                           plan.key_bits + (with_row ? plan.row_bits : 0), launch.stream);
  if (error != cudaSuccess) return error;
  if (plan.two_sorts) {
    cub::DoubleBuffer<uint32_t> rows(reinterpret_cast<uint32_t*>(base),
                                     reinterpret_cast<uint32_t*>(base + plan.column_keys));
    row_kernel<I><<<blocks, kThreads, 0, launch.stream>>>(indices.Current(), n, args.columns,
                                                          rows.Current());
    bytes = plan.library;
    error = sort(library, bytes, rows, indices, n, plan.row_bits, launch.stream);
    if (error != cudaSuccess) return error;
  }
  finish_kernel<U, I>
      <<<loop_blocks(args.rows * args.keep, kThreads, launch), kThreads, 0, launch.stream>>>(
          static_cast<const U*>(args.input), indices.Current(), args.rows, args.columns, args.keep,
          static_cast<U*>(args.values), args.positions);
  return cudaGetLastError();
}

template <class U>
cudaError_t run_sized(Element order, const SortPairsArgs& args, const Plan& plan,
                      const Launch& launch) {
  if (plan.wide_key) {
    if (plan.wide_index) return run<U, uint64_t, uint64_t>(order, args, plan, launch);
    return run<U, uint64_t, uint32_t>(order, args, plan, launch);
  }
  if constexpr (sizeof(U) <= 4) {
    if (plan.wide_index) return run<U, uint32_t, uint64_t>(order, args, plan, launch);
    return run<U, uint32_t, uint32_t>(order, args, plan, launch);
  }
  return cudaErrorInvalidValue;  // 8-byte elements have wide keys
}

}  // namespace

size_t sort_pairs_scratch_bytes(int bytes, int64_t rows, int64_t columns) {
  return plan_of(bytes, rows, columns).total();
}

cudaError_t launch_sort_pairs(Element order, const SortPairsArgs& args, const Launch& launch) {
  const Plan plan = plan_of(args.bytes, args.rows, args.columns);
  switch (args.bytes) {
    case 1: return run_sized<uint8_t>(order, args, plan, launch);
    case 2: return run_sized<uint16_t>(order, args, plan, launch);
    case 4: return run_sized<uint32_t>(order, args, plan, launch);
    default: return run_sized<uint64_t>(order, args, plan, launch);
  }
}

}  // namespace catena::gpu
