// Kernels that count nonzero elements and write their positions.
#include <cub/device/device_select.cuh>
#include <iterator>

#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/scan/counting.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

template <class U>
struct IsNonzero {
  using value_type = bool;
  using reference = bool;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;

  const U* data;
  U mask;

  __device__ bool operator*() const { return (*data & mask) != 0; }
  __device__ bool operator[](int64_t i) const { return (data[i] & mask) != 0; }
  __host__ __device__ IsNonzero operator+(int64_t i) const { return {data + i, mask}; }
  __host__ __device__ IsNonzero& operator+=(int64_t i) {
    data += i;
    return *this;
  }
};

// 0, 1, 2, ...
struct Counting {
  using value_type = int64_t;
  using reference = int64_t;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;

  int64_t at;

  __device__ int64_t operator*() const { return at; }
  __device__ int64_t operator[](int64_t i) const { return at + i; }
  __host__ __device__ Counting operator+(int64_t i) const { return {at + i}; }
};

template <class U>
IsNonzero<U> flags(const NonzeroArgs& args) {
  const U all = U(~U(0));
  return {static_cast<const U*>(args.data), args.signless ? U(all >> 1) : all};
}

template <class F>
auto visit_bytes(int bytes, const F& f) {
  switch (bytes) {
    case 1: return f(uint8_t());
    case 2: return f(uint16_t());
    case 4: return f(uint32_t());
    default: return f(uint64_t());
  }
}

template <class U>
__global__ void count_kernel(IsNonzero<U> flags, int64_t n, unsigned long long* result) {
  __shared__ unsigned long long shared[kThreads / 32];
  unsigned long long count = 0;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kThreads)
    count += flags[i];
  count = block_reduce(count, AddOp(), shared);
  if (threadIdx.x == 0 && count) atomicAdd(result, count);
}

template <class U>
cudaError_t select(void* scratch, size_t& bytes, const NonzeroArgs& args, int64_t* positions,
                   int64_t* found, cudaStream_t stream) {
  return cub::DeviceSelect::Flagged(scratch, bytes, Counting{0}, flags<U>(args), positions, found,
                                    args.count, stream);
}

__global__ void unravel_kernel(UnravelArgs args) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < args.count;
       i += int64_t(gridDim.x) * kThreads) {
    int64_t rest = args.positions[i];
    for (int d = args.ndim - 1; d > 0; --d) {
      const int64_t quotient = rest / args.shape[d];
      args.positions[d * args.count + i] = rest - quotient * args.shape[d];
      rest = quotient;
    }
    args.positions[i] = rest;
  }
}

}  // namespace

cudaError_t launch_nonzero_count(const NonzeroArgs& args, int64_t* result, const Launch& launch) {
  const cudaError_t error = cudaMemsetAsync(result, 0, sizeof(*result), launch.stream);
  if (error != cudaSuccess) return error;
  visit_bytes(args.bytes, [&](auto unit) {
    using U = decltype(unit);
    count_kernel<U><<<loop_blocks(args.count, kThreads, launch, 8), kThreads, 0, launch.stream>>>(
        flags<U>(args), args.count, reinterpret_cast<unsigned long long*>(result));
  });
  return cudaGetLastError();
}

size_t nonzero_scratch_bytes(const NonzeroArgs& args) {
  size_t bytes = 0;
  visit_bytes(args.bytes, [&](auto unit) {
    select<decltype(unit)>(nullptr, bytes, args, nullptr, nullptr, nullptr);
  });
  return bytes;
}

cudaError_t launch_nonzero(const NonzeroArgs& args, int64_t* positions, int64_t* found,
                           void* scratch, size_t scratch_bytes, const Launch& launch) {
  return visit_bytes(args.bytes, [&](auto unit) {
    size_t bytes = scratch_bytes;
    return select<decltype(unit)>(scratch, bytes, args, positions, found, launch.stream);
  });
}

void launch_unravel(const UnravelArgs& args, const Launch& launch) {
  unravel_kernel<<<loop_blocks(args.count, kThreads, launch, 8), kThreads, 0, launch.stream>>>(
      args);
}

}  // namespace catena::gpu
