// One thread for each element that is written. Sums gather everything that contributes to the
// element, in a fixed order, so they need no atomic additions.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/convolution/patches.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

// Removes the last coordinate from an index.
template <class Index>
__device__ Index take_off(Index& index, int64_t extent) {
  const Index coordinate = index % Index(extent);
  index /= Index(extent);
  return coordinate;
}

template <class T, class Index, bool kLast>
__global__ void __launch_bounds__(kThreads) patches_kernel(PatchArgs a, Index count) {
  wait_for_previous_kernel();
  const T* const from = static_cast<const T*>(a.from);
  T* const to = static_cast<T*>(a.to);
  const Index step = Index(gridDim.x) * kThreads;
  for (Index at = Index(blockIdx.x) * kThreads + threadIdx.x; at < count; at += step) {
    Index rest = at, c = 0;
    if (kLast) c = take_off(rest, a.channels);
    Index x = 0, y = 0;
    if (!kLast) x = take_off(rest, a.out[1]), y = take_off(rest, a.out[0]);
    const Index j = take_off(rest, a.kernel[1]), i = take_off(rest, a.kernel[0]);
    if (kLast) x = take_off(rest, a.out[1]), y = take_off(rest, a.out[0]);
    if (!kLast) c = take_off(rest, a.channels);
    const int64_t n = rest, h = y * a.stride[0] - a.pad[0] + i * a.dilation[0],
                  w = x * a.stride[1] - a.pad[1] + j * a.dilation[1];
    const bool inside = h >= 0 && h < a.height && w >= 0 && w < a.width;
    const int64_t target = n * a.patches[0] + c * a.patches[1] + i * a.patches[2] +
                           j * a.patches[3] + y * a.patches[4] + x * a.patches[5];
    to[target] = inside ? from[n * a.image[0] + c * a.image[1] + h * a.image[2] + w * a.image[3]]
                        : Narrow<T>::from(0);
  }
}

// The position that reads `place` at a tap, or -1.
__device__ inline int64_t position_of(int64_t place, int64_t stride, int64_t positions) {
  if (place < 0 || place % stride != 0) return -1;
  const int64_t position = place / stride;
  return position < positions ? position : -1;
}

template <class T, class Index, bool kLast>
__global__ void __launch_bounds__(kThreads) patch_sums_kernel(PatchArgs a, Index count) {
  wait_for_previous_kernel();
  const T* const from = static_cast<const T*>(a.from);
  T* const to = static_cast<T*>(a.to);
  const Index step = Index(gridDim.x) * kThreads;
  for (Index at = Index(blockIdx.x) * kThreads + threadIdx.x; at < count; at += step) {
    Index rest = at, c = 0;
    if (kLast) c = take_off(rest, a.channels);
    const Index w = take_off(rest, a.width), h = take_off(rest, a.height);
    if (!kLast) c = take_off(rest, a.channels);
    const int64_t n = rest;
    Compute<T> sum = 0;
    for (int64_t i = 0; i < a.kernel[0]; ++i) {
      const int64_t y =
          position_of(int64_t(h) + a.pad[0] - i * a.dilation[0], a.stride[0], a.out[0]);
      if (y < 0) continue;
      for (int64_t j = 0; j < a.kernel[1]; ++j) {
        const int64_t x =
            position_of(int64_t(w) + a.pad[1] - j * a.dilation[1], a.stride[1], a.out[1]);
        if (x < 0) continue;
        sum += widen(from[n * a.patches[0] + c * a.patches[1] + i * a.patches[2] +
                          j * a.patches[3] + y * a.patches[4] + x * a.patches[5]]);
      }
    }
    T& target =
        to[n * a.image[0] + c * a.image[1] + int64_t(h) * a.image[2] + int64_t(w) * a.image[3]];
    if (a.accumulate) sum += widen(target);
    target = Narrow<T>::from(sum);
  }
}

// Runs kernel<T, Index, kLast> with the narrower index type where it suffices.
#define CATENA_PATCH_LAUNCH(kernel, args, count)                                                  \
  do {                                                                                            \
    const unsigned blocks = loop_blocks(count, kThreads, launch, 32);                             \
    const bool small = (count) < INT32_MAX / 2;                                                   \
    if (small && (args).channels_last)                                                            \
      launch_kernel<kernel<T, uint32_t, true>>(blocks, kThreads, launch, args, uint32_t(count));  \
    else if (small)                                                                               \
      launch_kernel<kernel<T, uint32_t, false>>(blocks, kThreads, launch, args, uint32_t(count)); \
    else if ((args).channels_last)                                                                \
      launch_kernel<kernel<T, uint64_t, true>>(blocks, kThreads, launch, args, uint64_t(count));  \
    else                                                                                          \
      launch_kernel<kernel<T, uint64_t, false>>(blocks, kThreads, launch, args, uint64_t(count)); \
  } while (false)

}  // namespace

void launch_patches(Float type, const PatchArgs& args, const Launch& launch) {
  const int64_t count =
      args.images * args.channels * args.kernel[0] * args.kernel[1] * args.out[0] * args.out[1];
  CATENA_FLOAT_SWITCH(type, CATENA_PATCH_LAUNCH(patches_kernel, args, count))
}

void launch_patch_sums(Float type, const PatchArgs& args, const Launch& launch) {
  const int64_t count = args.images * args.channels * args.height * args.width;
  CATENA_FLOAT_SWITCH(type, CATENA_PATCH_LAUNCH(patch_sums_kernel, args, count))
}

#undef CATENA_PATCH_LAUNCH

}  // namespace catena::gpu
