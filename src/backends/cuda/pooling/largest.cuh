// Largest elements of any window, as they are defined: NaN is above all, and the first of equal
// ones stays.
#pragma once

#include "backends/cuda/pooling/pooling_index.cuh"

namespace catena::gpu {

// The elements [begin, end) of the image that a position sees along an axis.
template <class D>
struct Seen {
  D first;  // of the window, which may be before the image
  D begin, end;
};
template <class Index>
__device__ Seen<Signed<Index>> seen(const Sizes<Index>& s, int axis, Index position) {
  using D = Signed<Index>;
  const D first = D(position) * s.stride[axis] - s.pad[axis];
  const D last = first + s.kernel[axis], in = D(s.in[axis]);
  return {first, first < 0 ? 0 : first, last < in ? last : in};
}

// NaN is above all, and the first of equal ones stays.
template <class C>
__device__ bool is_larger(C v, C best) {
  return !(v <= best) && best == best;
}

template <class T, int N>
struct Largest {
  Pack<T, N> best;
  int place[N];

  __device__ void start(const Pack<T, N>& v, int tap) {
    best = v;
#pragma unroll
    for (int i = 0; i < N; ++i) place[i] = tap;
  }
  __device__ void see(const Pack<T, N>& v, int tap) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const bool larger = is_larger(widen(v.v[i]), widen(best.v[i]));
      best.v[i] = larger ? v.v[i] : best.v[i];
      place[i] = larger ? tap : place[i];
    }
  }
  template <class Place>
  __device__ void keep(void* places, int64_t at) const {
    Pack<Place, N> kept;
#pragma unroll
    for (int i = 0; i < N; ++i) kept.v[i] = Place(place[i]);
    store_pack<Place, N>(places, at, kept);
  }
};

// Finds and stores the largest elements of a pack of channels at one position.
template <class T, int N, class Place, class Index>
__device__ void pool_point(const PoolingArgs& args, const Sizes<Index>& s, const Point<Index>& p) {
  using D = Signed<Index>;
  const Seen<D> depth = seen(s, 0, p.d), rows = seen(s, 1, p.h), columns = seen(s, 2, p.w);
  const int64_t channel = int64_t(p.pack) * N;
  Largest<T, N> largest;
  bool first = true;
#pragma unroll 1
  for (D d = depth.begin; d < depth.end; ++d)
#pragma unroll 1
    for (D h = rows.begin; h < rows.end; ++h) {
      const D row = (d - depth.first) * s.kernel[1] + h - rows.first;
      int tap = int(row * s.kernel[2] + columns.begin - columns.first);
      int64_t at = int64_t(s.at(p.image, Index(d), Index(h), Index(columns.begin), s.in)) + channel;
      for (D w = columns.begin; w < columns.end; ++w, ++tap, at += int64_t(s.channels)) {
        const Pack<T, N> v = load_pack<T, N>(args.x, at);
        if (first)
          largest.start(v, tap);
        else
          largest.see(v, tap);
        first = false;
      }
    }
  const int64_t at = int64_t(s.at(p.image, p.d, p.h, p.w, s.out)) + channel;
  store_pack<T, N>(args.y, at, largest.best);
  if (args.places) largest.template keep<Place>(args.places, at);
}

}  // namespace catena::gpu
