// Gather and scatter of elements chosen by several lists of positions.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/index/positions.cuh"
#include "backends/cuda/index/select.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256, kMostBlocks = 32;

// The distance in bytes from the base element to the chosen one; `offsets` belong to the lists.
template <int kLists, class I>
__device__ int64_t displacement(const SelectArgs& args, const int64_t* offsets) {
  int64_t bytes = 0;
#pragma unroll
  for (int k = 0; k < kLists; ++k) {
    int64_t p = *reinterpret_cast<const I*>(args.pointers[2 + k] + offsets[2 + k]);
    if (args.extents[k] > 0) p = resolve(p, args.extents[k], args.clip);
    bytes += p * args.steps[k];
  }
  return bytes;
}

// One thread for each unit of the values. N is a type that holds the numbers of all units.
template <bool kScatter, int kLists, class Unit, class I, class N>
__global__ void select_kernel(const __grid_constant__ SelectArgs args) {
  wait_for_previous_kernel();
  const N size = N(args.size), stride = N(gridDim.x) * kThreads;
  for (N i = N(blockIdx.x) * kThreads + threadIdx.x; i < size; i += stride) {
    int64_t offsets[2 + kLists] = {};
    N rest = i;
    for (int d = args.ndim - 1; d > 0; --d) {
      const N extent = N(args.shape[d]), quotient = rest / extent;
      const int64_t at = int64_t(rest - quotient * extent);
#pragma unroll
      for (int k = 0; k < 2 + kLists; ++k) offsets[k] += at * args.strides[k][d];
      rest = quotient;
    }
#pragma unroll
    for (int k = 0; k < 2 + kLists; ++k) offsets[k] += int64_t(rest) * args.strides[k][0];
    const int64_t bytes = displacement<kLists, I>(args, offsets);
    Unit* value = reinterpret_cast<Unit*>(args.pointers[0] + offsets[0]);
    Unit* element = reinterpret_cast<Unit*>(args.pointers[1] + offsets[1] + bytes);
    if constexpr (kScatter) {
      if constexpr (kLists == 1) {
        // The index of this position in its list, which is contiguous when `last` is given.
        if (args.last && args.last[bytes / args.steps[0]] != offsets[2] / int64_t(sizeof(I)))
          continue;
      }
      *element = *value;
    } else {
      *value = *element;
    }
  }
}

template <bool kScatter, int kLists, class Unit, class I>
void launch_size(const SelectArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks(args.size, kThreads, launch, kMostBlocks);
  // Leaves room for one more stride, so that the loop's counter does not wrap.
  if (args.size < (int64_t(1) << 31))
    launch_kernel<select_kernel<kScatter, kLists, Unit, I, uint32_t>>(blocks, kThreads, launch,
                                                                      args);
  else
    launch_kernel<select_kernel<kScatter, kLists, Unit, I, int64_t>>(blocks, kThreads, launch,
                                                                     args);
}

template <bool kScatter, int kLists, class Unit>
void launch_positions(const SelectArgs& args, const Launch& launch) {
  if (args.wide)
    launch_size<kScatter, kLists, Unit, int64_t>(args, launch);
  else
    launch_size<kScatter, kLists, Unit, int32_t>(args, launch);
}

template <bool kScatter, int kLists>
void launch_units(const SelectArgs& args, const Launch& launch) {
  switch (args.unit) {
    case 16: return launch_positions<kScatter, kLists, uint4>(args, launch);
    case 8: return launch_positions<kScatter, kLists, uint2>(args, launch);
    case 4: return launch_positions<kScatter, kLists, uint32_t>(args, launch);
    case 2: return launch_positions<kScatter, kLists, uint16_t>(args, launch);
    default: return launch_positions<kScatter, kLists, uint8_t>(args, launch);
  }
}

template <bool kScatter>
void launch_lists(const SelectArgs& args, const Launch& launch) {
  switch (args.lists) {
    case 1: return launch_units<kScatter, 1>(args, launch);
    case 2: return launch_units<kScatter, 2>(args, launch);
    default: return launch_units<kScatter, 3>(args, launch);
  }
}

template <class I>
__global__ void last_positions_kernel(const I* positions, bool clip, int64_t count, int64_t extent,
                                      long long* last) {
  wait_for_previous_kernel();
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride)
    atomicMax(last + resolve(positions[i], extent, clip), static_cast<long long>(i));
}

}  // namespace

void launch_gather(const SelectArgs& args, const Launch& launch) {
  launch_lists<false>(args, launch);
}
void launch_scatter(const SelectArgs& args, const Launch& launch) {
  launch_lists<true>(args, launch);
}

void launch_last_positions(const void* positions, bool wide, bool clip, int64_t count,
                           int64_t extent, long long* last, const Launch& launch) {
  const unsigned blocks = loop_blocks(count, kThreads, launch, kMostBlocks);
  if (wide)
    launch_kernel<last_positions_kernel<int64_t>>(blocks, kThreads, launch,
                                                  static_cast<const int64_t*>(positions), clip,
                                                  count, extent, last);
  else
    launch_kernel<last_positions_kernel<int32_t>>(blocks, kThreads, launch,
                                                  static_cast<const int32_t*>(positions), clip,
                                                  count, extent, last);
}

}  // namespace catena::gpu
