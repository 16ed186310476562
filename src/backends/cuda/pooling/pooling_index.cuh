// Index arithmetic of pooling kernels, of any window: in 32 bits where all arrays are small enough.
#pragma once

#include <stdint.h>

#include <type_traits>

#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/common/quotient.cuh"
#include "backends/cuda/pooling/pooling.h"

namespace catena::gpu {

constexpr int kPoolingThreads = 256;
constexpr int kPoolingBlocks = 32;  // for each multiprocessor, of loops; more only wait

// How a linear index is taken apart: the pack of channels, the three axes, the image.
template <class Index>
struct Grid {
  Quotient<Index> packs, width, height, depth;
  int64_t count;
  Grid(const PoolingSizes& s, const int64_t (&extents)[3], int pack)
      : packs(s.channels / pack),
        width(extents[2]),
        height(extents[1]),
        depth(extents[0]),
        count(s.images * (s.channels / pack) * extents[0] * extents[1] * extents[2]) {}
};
template <class Index>
struct Point {
  Index pack, w, h, d, image;
  __device__ Point(Index n, const Grid<Index>& g)
      : pack(g.packs.split(n)),
        w(g.width.split(n)),
        h(g.height.split(n)),
        d(g.depth.split(n)),
        image(n) {}
  // Of an image of two axes.
  __device__ Point(Index pack, Index w, Index h, Index image)
      : pack(pack), w(w), h(h), d(0), image(image) {}
};

// Distances, which may be negative.
template <class Index>
using Signed = std::make_signed_t<Index>;

// Sizes in the type of the indices.
template <class Index>
struct Sizes {
  Index channels, in[3], out[3];
  Signed<Index> kernel[3], stride[3], pad[3];
  explicit Sizes(const PoolingSizes& s) : channels(Index(s.channels)) {
    using D = Signed<Index>;
    for (int k = 0; k < 3; ++k) {
      in[k] = Index(s.in[k]), out[k] = Index(s.out[k]);
      kernel[k] = D(s.kernel[k]), stride[k] = D(s.stride[k]), pad[k] = D(s.pad[k]);
    }
  }
  __device__ Index at(Index image, Index d, Index h, Index w, const Index (&extents)[3]) const {
    return (((image * extents[0] + d) * extents[1] + h) * extents[2] + w) * channels;
  }
};

template <class T, int N>
__device__ Pack<T, N> load_pack(const void* from, int64_t at) {
  return *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(from) + at);
}
template <class T, int N>
__device__ void store_pack(void* to, int64_t at, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(static_cast<T*>(to) + at) = pack;
}

// Choices of a launch ----------------------------------------------------------------------------

inline bool has_bytes(const PoolingSizes& s) { return s.taps() <= kMostTapsOfByte; }

// Whether every index and every sum with it fits 31 bits, with room for a few more elements.
inline bool is_small(const PoolingSizes& s) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1, kRoom = 64;
  int64_t in = s.images * s.channels, out = in;
  bool small = true;
  for (int k = 0; k < 3; ++k) {
    in *= s.in[k], out *= s.out[k];
    small = small && s.stride[k] <= kMost && s.in[k] + s.pad[k] + s.kernel[k] <= kMost - kRoom;
  }
  return small && in <= kMost && out <= kMost;
}

// run(place, index) with a number each of the types that places and indices need.
template <class Run>
void with_types(const PoolingSizes& s, const Run& run) {
  const bool small = is_small(s);
  if (has_bytes(s))
    small ? run(uint8_t(), uint32_t()) : run(uint8_t(), int64_t());
  else
    small ? run(int32_t(), uint32_t()) : run(int32_t(), int64_t());
}

// 16 bytes of channels at a time, where that divides them.
template <class T>
bool takes_packs(const PoolingArgs& a) {
  return a.aligned && a.sizes.channels % kPack<T> == 0;
}

}  // namespace catena::gpu
