// Stands in for src/backends/cuda/common/early_launch.cuh where a test compiles a .cu for the host
// whose threads meet: a launch runs one block after the other, each on as many threads as it has.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "backends/cuda/runtime/launch.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

namespace catena::gpu {

// One of each for all sources: functions of headers, of which the linker keeps one, use them.
struct Position {
  unsigned x = 0, y = 0;
};
inline thread_local Position threadIdx, blockIdx;
inline dim3 gridDim, blockDim;

// Where the threads of the running block meet.
inline std::optional<std::barrier<>> meeting_of_block;
inline std::deque<std::barrier<>> meetings_of_warps;
inline char exchanged[1024][16];
inline std::atomic<int> said_yes;

inline void __syncthreads() { meeting_of_block->arrive_and_wait(); }
inline void __syncwarp() { meetings_of_warps[threadIdx.x / 32].arrive_and_wait(); }
inline int __syncthreads_or(int yes) {
  __syncthreads();
  if (threadIdx.x == 0) said_yes = 0;
  __syncthreads();
  if (yes != 0) said_yes = 1;
  __syncthreads();
  return said_yes;
}
// What the lane `from` of the thread's warp says.
template <class T>
T value_of_lane(T value, unsigned from) {
  std::barrier<>& meeting = meetings_of_warps[threadIdx.x / 32];
  std::memcpy(exchanged[threadIdx.x], &value, sizeof(T));
  meeting.arrive_and_wait();
  T other;
  std::memcpy(&other, exchanged[threadIdx.x / 32 * 32 + from], sizeof(T));
  meeting.arrive_and_wait();
  return other;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int offset) {
  return value_of_lane(value, threadIdx.x % 32 ^ unsigned(offset));
}
template <class T>
T __shfl_down_sync(unsigned, T value, int offset) {
  const unsigned lane = threadIdx.x % 32, from = lane + unsigned(offset);
  return value_of_lane(value, from < 32 ? from : lane);
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return value_of_lane(value, unsigned(lane));
}
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* to, unsigned value) {
  return std::atomic_ref<unsigned>(*to).fetch_add(value);
}
inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }

namespace {

inline void wait_for_previous_kernel() {}

template <auto kKernel, class... Args>
void launch_kernel(dim3 grid, dim3 block, const Launch&, const Args&... args) {
  gridDim = grid, blockDim = block;
  meeting_of_block.emplace(block.x);
  meetings_of_warps.clear();
  for (unsigned w = 0; w < block.x / 32; ++w) meetings_of_warps.emplace_back(32);
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < block.x; ++t)
    threads.emplace_back([t, grid, &args...] {
      threadIdx.x = t;
      for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
          kKernel(args...);
          __syncthreads();  // the next block has the same shared memory
        }
    });
}

}  // namespace
}  // namespace catena::gpu
