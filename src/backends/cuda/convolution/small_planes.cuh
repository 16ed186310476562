// Planes of images in shared memory.
#pragma once

#include "backends/cuda/common/dynamic_shared.cuh"

namespace catena::gpu {
namespace {

// The columns behind the first that a window of this width covers, in whole packs.
template <int kSpan>
constexpr int kColumnsAhead = (kSpan + 2) / 4 * 4;

__device__ inline int lesser(int a, int b) { return a < b ? a : b; }
__device__ inline int greater(int a, int b) { return a < b ? b : a; }

// Loads of a thread that are on the way at a time.
constexpr int kLoads = 8;

__device__ inline void clear(float* to, int count) {
  for (int at = int(threadIdx.x); at < count; at += int(blockDim.x)) to[at] = 0;
}

// Where planes lie in shared memory: element (h, w) at row h + down and column w + right.
// Elements for which there is no place are left out.
struct PlanePlace {
  float* to;
  int rows, pitch, down, right;
};

// Copies `planes` contiguous planes, each thread every blockDim.x-th element. It steps through
// (plane, h, w) by additions, as divisions for each element would cost more than the copy.
__device__ inline void copy_planes(const float* from, int planes, int height, int width,
                                   const PlanePlace& place) {
  const int count = planes * height * width, step = int(blockDim.x);
  const int step_w = step % width, step_h = step / width % height,
            step_plane = step / width / height;
  int at = int(threadIdx.x);
  int w = at % width, h = at / width % height, plane = at / width / height;
  for (; at < count; at += kLoads * step) {
    float values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      if (at + i * step < count) values[i] = from[at + i * step];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (at + i * step >= count) break;
      const int row = h + place.down, column = w + place.right;
      if (row >= 0 && row < place.rows && column >= 0 && column < place.pitch)
        place.to[(plane * place.rows + row) * place.pitch + column] = values[i];
      w += step_w, h += step_h, plane += step_plane;
      if (w >= width) w -= width, ++h;
      if (h >= height) h -= height, ++plane;
    }
  }
}

__device__ inline void load_pack(float* to, const float* from) {
  const float4 pack = *reinterpret_cast<const float4*>(from);
  to[0] = pack.x, to[1] = pack.y, to[2] = pack.z, to[3] = pack.w;
}

}  // namespace
}  // namespace catena::gpu
