// Stands in for src/backends/cuda/common/early_launch.cuh where a test compiles a .cu for the host
// whose threads meet: a launch runs one block after the other, each in as many fibers as it has
// threads.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "backends/cuda/runtime/launch.h"
#include "device/fibers.h"

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
#undef __grid_constant__
#define __grid_constant__

namespace catena::gpu {

// One of each for all sources: functions of headers, of which the linker keeps one, use them.
struct Position {
  unsigned x = 0, y = 0;
};
inline Position threadIdx, blockIdx;
inline dim3 gridDim, blockDim;

// Where the threads of the running block meet.
inline std::optional<fibers::Meeting> meeting_of_block;
inline std::vector<fibers::Meeting> meetings_of_warps;
inline std::map<int, fibers::Meeting> named_meetings;
inline char exchanged[1024][16];
inline int said_yes;

inline void wait_at(fibers::Meeting& meeting) {
  const Position self = threadIdx;
  meeting.wait();
  threadIdx = self;
}
inline void __syncthreads() { wait_at(*meeting_of_block); }
inline void __syncwarp() { wait_at(meetings_of_warps[threadIdx.x / 32]); }
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
  std::memcpy(exchanged[threadIdx.x], &value, sizeof(T));
  __syncwarp();
  T other;
  std::memcpy(&other, exchanged[threadIdx.x / 32 * 32 + from], sizeof(T));
  __syncwarp();
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
  const unsigned before = *to;
  *to += value;
  return before;
}
inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }

namespace {

inline void wait_for_previous_kernel() {}

template <auto kKernel, class... Args>
void launch_kernel(dim3 grid, dim3 block, const Launch&, const Args&... args) {
  gridDim = grid, blockDim = block;
  meeting_of_block.emplace(block.x);
  meetings_of_warps.clear();
  named_meetings.clear();
  for (unsigned w = 0; w < block.x / 32; ++w) meetings_of_warps.emplace_back(32);
  const auto run_thread = [&](unsigned t) {
    threadIdx.x = t;
    kKernel(args...);
  };
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) fibers::run(block.x, run_thread);
}

}  // namespace
}  // namespace catena::gpu
