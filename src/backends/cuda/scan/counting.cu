// Counts elements by value or by bin, in shared memory if the counters fit there.
#include "backends/cuda/scan/counting.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kSharedBins = 4096;  // 32-bit counters in the shared memory of a block
using Counter = unsigned long long;

// The bin of a whole number is the number.
template <class T>
struct ValueBin {
  const T* x;
  __device__ int64_t operator()(int64_t i) const { return int64_t(x[i]); }
};

// As on the CPU: a guess for even edges, corrected with the edges themselves.
template <class T>
struct EdgeBin {
  const T *x, *edges;
  int64_t bins;
  bool uniform;

  __device__ int64_t operator()(int64_t i) const {
    const T value = x[i];
    if (!(value >= edges[0] && value <= edges[bins])) return -1;
    const double scale = double(bins) / (double(edges[bins]) - double(edges[0]));
    return uniform && isfinite(scale) ? near(value, scale) : search(value);
  }
  __device__ int64_t near(T value, double scale) const {
    const double guess = (double(value) - double(edges[0])) * scale;
    int64_t i = guess > 0 ? int64_t(guess) : 0;
    if (i > bins - 1) i = bins - 1;
    while (i > 0 && value < edges[i]) --i;
    while (i < bins - 1 && value >= edges[i + 1]) ++i;
    return i;
  }
  // The last edge that is not greater than x.
  __device__ int64_t search(T value) const {
    int64_t low = 0, high = bins;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (edges[middle] <= value)
        low = middle + 1;
      else
        high = middle;
    }
    return low - 1;
  }
};

template <class Bin>
__global__ void shared_kernel(Bin bin, int64_t n, int bins, Counter* counts) {
  extern __shared__ unsigned mine[];
  for (int b = threadIdx.x; b < bins; b += kThreads) mine[b] = 0;
  __syncthreads();
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kThreads) {
    const int64_t b = bin(i);
    if (b >= 0) atomicAdd(&mine[b], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += kThreads) {
    if (mine[b]) atomicAdd(&counts[b], Counter(mine[b]));
  }
}

template <class Bin>
__global__ void global_kernel(Bin bin, int64_t n, Counter* counts) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kThreads) {
    const int64_t b = bin(i);
    if (b >= 0) atomicAdd(&counts[b], Counter(1));
  }
}

template <class Bin>
cudaError_t count(const Bin& bin, int64_t n, int64_t* result, int64_t bins, const Launch& launch) {
  const cudaError_t error =
      cudaMemsetAsync(result, 0, size_t(bins) * sizeof(int64_t), launch.stream);
  if (error != cudaSuccess) return error;
  Counter* counts = reinterpret_cast<Counter*>(result);
  const int64_t wanted = (n + kThreads * 8 - 1) / (kThreads * 8),
                most = int64_t(launch.multiprocessors) * 8;
  const unsigned blocks = unsigned(wanted < most ? wanted : most);
  // A block's counters cannot overflow: a block counts fewer than 2^32 of n < 2^40 elements.
  if (bins <= kSharedBins && n < (int64_t(1) << 40))
    shared_kernel<<<blocks, kThreads, size_t(bins) * sizeof(unsigned), launch.stream>>>(
        bin, n, int(bins), counts);
  else
    global_kernel<<<blocks, kThreads, 0, launch.stream>>>(bin, n, counts);
  return cudaGetLastError();
}

template <class T>
cudaError_t count_values(const void* x, int64_t n, int64_t* counts, int64_t bins,
                         const Launch& launch) {
  return count(ValueBin<T>{static_cast<const T*>(x)}, n, counts, bins, launch);
}

template <class T>
cudaError_t count_edges(const HistogramArgs& args, const Launch& launch) {
  const EdgeBin<T> bin{static_cast<const T*>(args.input), static_cast<const T*>(args.edges),
                       args.bins, args.uniform};
  return count(bin, args.count, args.counts, args.bins, launch);
}

}  // namespace

cudaError_t launch_bincount(Element type, const void* x, int64_t n, int64_t* counts, int64_t bins,
                            const Launch& launch) {
  switch (type) {
    case Element::kBool:
    case Element::kUInt8: return count_values<uint8_t>(x, n, counts, bins, launch);
    case Element::kInt8: return count_values<int8_t>(x, n, counts, bins, launch);
    case Element::kUInt16: return count_values<uint16_t>(x, n, counts, bins, launch);
    case Element::kInt16: return count_values<int16_t>(x, n, counts, bins, launch);
    case Element::kUInt32: return count_values<uint32_t>(x, n, counts, bins, launch);
    case Element::kInt32: return count_values<int32_t>(x, n, counts, bins, launch);
    case Element::kUInt64: return count_values<uint64_t>(x, n, counts, bins, launch);
    case Element::kInt64: return count_values<int64_t>(x, n, counts, bins, launch);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_histogram(Element type, const HistogramArgs& args, const Launch& launch) {
  switch (type) {
    case Element::kFloat32: return count_edges<float>(args, launch);
    case Element::kFloat64: return count_edges<double>(args, launch);
    case Element::kInt64: return count_edges<int64_t>(args, launch);
    case Element::kUInt64: return count_edges<uint64_t>(args, launch);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace catena::gpu
