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
inline unsigned place_in_cluster;  // of the running block

// Where the threads of the running blocks meet: of one, or of those of a cluster.
inline std::vector<fibers::Meeting> meetings_of_blocks, meetings_of_warps;
inline std::map<int, fibers::Meeting> named_meetings;
inline char exchanged[1024][16];
inline int said_yes;

// The thread's number among those of the running blocks.
inline unsigned number_of_thread() { return place_in_cluster * blockDim.x + threadIdx.x; }
inline void wait_at(fibers::Meeting& meeting) {
  const Position thread = threadIdx, block = blockIdx;
  const unsigned place = place_in_cluster;
  meeting.wait();
  threadIdx = thread, blockIdx = block, place_in_cluster = place;
}
inline void __syncthreads() { wait_at(meetings_of_blocks[place_in_cluster]); }
inline void __syncwarp() { wait_at(meetings_of_warps[number_of_thread() / 32]); }
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
  const unsigned self = number_of_thread();
  std::memcpy(exchanged[self], &value, sizeof(T));
  __syncwarp();
  T other;
  std::memcpy(&other, exchanged[self / 32 * 32 + from], sizeof(T));
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

// Runs the kernel's clusters of `blocks` adjacent blocks one after the other. In every other one
// of several blocks threads that have met overtake the others, as whole blocks do on a GPU.
template <auto kKernel, class... Args>
void run_clusters(unsigned blocks, dim3 grid, dim3 block, const Args&... args) {
  gridDim = grid, blockDim = block;
  meetings_of_blocks.assign(blocks, fibers::Meeting(block.x));
  meetings_of_warps.assign(blocks * block.x / 32, fibers::Meeting(32));
  named_meetings.clear();
  for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned first = 0; first < grid.x; first += blocks)
      fibers::run(
          blocks * block.x,
          [&](unsigned t) {
            place_in_cluster = t / block.x;
            blockIdx = {first + place_in_cluster, y};
            threadIdx.x = t % block.x;
            kKernel(args...);
          },
          blocks > 1 && first / blocks % 2 == 0 ? fibers::Order::kLastMet : fibers::Order::kAny);
}

template <auto kKernel, class... Args>
void launch_kernel(dim3 grid, dim3 block, const Launch&, const Args&... args) {
  run_clusters<kKernel>(1, grid, block, args...);
}

}  // namespace
}  // namespace catena::gpu
