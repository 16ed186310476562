// Floats. NaNs with a sign, as x86 processors make them, are moved from the front to the end by two
// kernels that do nothing when there are none.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backends/cuda/sort/sort_keys.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr size_t kHeader = 16;  // scratch memory after the sort: the number of NaNs in front

// The number of NaNs at the front of a row, which is sorted apart from them.
template <class O>
__device__ int64_t front_nans(const typename O::U* x, int64_t n) {
  if (!O::is_nan(x[0])) return 0;
  int64_t low = 1, high = n;  // the first element that is not NaN is in [low, high]
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if ((x[middle] & O::kSign) && O::is_nan(x[middle]))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <class O>
__global__ void rotate_kernel(const typename O::U* sorted, int64_t n, int64_t* front,
                              typename O::U* rotated) {
  __shared__ int64_t shared_count;
  if (threadIdx.x == 0) {
    shared_count = front_nans<O>(sorted, n);
    if (blockIdx.x == 0) *front = shared_count;
  }
  __syncthreads();
  const int64_t count = shared_count;
  if (count == 0 || count == n) return;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kThreads)
    rotated[i] = sorted[i + count < n ? i + count : i + count - n];
}

template <class U>
__global__ void replace_kernel(const U* rotated, const int64_t* front, int64_t n, U* sorted) {
  if (*front == 0 || *front == n) return;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kThreads)
    sorted[i] = rotated[i];
}

template <class T>
size_t scratch_bytes(int64_t count) {
  const size_t sort = keys_scratch_bytes<T>(count), rotation = kHeader + size_t(count) * sizeof(T);
  return sort > rotation ? sort : rotation;
}

template <class T, class O>
cudaError_t run(const SortKeysArgs& args, const Launch& launch) {
  using U = typename O::U;
  const cudaError_t error = run_sort_keys<T>(args, launch);
  if (error != cudaSuccess) return error;
  U *sorted = static_cast<U*>(args.output),
    *rotated = reinterpret_cast<U*>(static_cast<char*>(args.scratch) + kHeader);
  int64_t* front = static_cast<int64_t*>(args.scratch);
  const unsigned blocks = loop_blocks(args.count, kThreads, launch);
  rotate_kernel<O><<<blocks, kThreads, 0, launch.stream>>>(sorted, args.count, front, rotated);
  replace_kernel<U><<<blocks, kThreads, 0, launch.stream>>>(rotated, front, args.count, sorted);
  return cudaGetLastError();
}

}  // namespace

size_t float_keys_scratch_bytes(Element order, int64_t count) {
  switch (order) {
    case Element::kFloat16: return scratch_bytes<__half>(count);
    case Element::kBFloat16: return scratch_bytes<__nv_bfloat16>(count);
    case Element::kFloat32: return scratch_bytes<float>(count);
    default: return scratch_bytes<double>(count);
  }
}

cudaError_t launch_float_keys(Element order, const SortKeysArgs& args, const Launch& launch) {
  switch (order) {
    case Element::kFloat16: return run<__half, order::OrderedF16>(args, launch);
    case Element::kBFloat16: return run<__nv_bfloat16, order::OrderedBF16>(args, launch);
    case Element::kFloat32: return run<float, order::OrderedF32>(args, launch);
    default: return run<double, order::OrderedF64>(args, launch);
  }
}

}  // namespace catena::gpu
