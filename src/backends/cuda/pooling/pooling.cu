// Max pooling. A thread makes one result, or one pack of 16 bytes along the channels; gradients are
// gathered by the elements of the image, so that no two threads add to one number and equal calls
// give equal bits.
#include "backends/cuda/pooling/pooling.h"

#include <type_traits>

#define CATENA_FN __host__ __device__ inline
#include "device/index.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

// Linear indices are 32-bit numbers where all arrays are small enough, divided by multiplication.
template <class Index>
struct Quotient;
template <>
struct Quotient<uint32_t> {
  jit::Divider by;
  explicit Quotient(int64_t divisor) : by(jit::make_divider(uint32_t(divisor))) {}
  __device__ uint32_t split(uint32_t& n) const {
    uint32_t rest;
    n = jit::divide(n, by, rest);
    return rest;
  }
  __device__ uint32_t of(uint32_t n) const { return jit::divide(n, by); }
};
template <>
struct Quotient<int64_t> {
  int64_t by;
  explicit Quotient(int64_t divisor) : by(divisor) {}
  __device__ int64_t split(int64_t& n) const {
    const int64_t rest = n % by;
    n /= by;
    return rest;
  }
  __device__ int64_t of(int64_t n) const { return n / by; }
};

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
    *reinterpret_cast<Pack<Place, N>*>(static_cast<Place*>(places) + at) = kept;
  }
};

template <class T, int N>
__device__ Pack<T, N> load(const void* from, int64_t at) {
  return *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(from) + at);
}

// kWindow: the height and width of a window of two axes, which is then read without a loop; else 0.
template <class T, int N, class Place, int kWindow, class Index>
__global__ void __launch_bounds__(kThreads)
    max_pooling_kernel(PoolingArgs args, Sizes<Index> s, Grid<Index> grid) {
  wait_for_previous_kernel();
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < grid.count; i += step) {
    const Point<Index> p(Index(i), grid);
    using D = Signed<Index>;
    const Seen<D> depth = seen(s, 0, p.d), rows = seen(s, 1, p.h), columns = seen(s, 2, p.w);
    const int64_t channel = int64_t(p.pack) * N;
    Largest<T, N> largest;
    bool first = true;
    const auto see = [&](D d, D h, D w, int tap) {
      const Pack<T, N> v =
          load<T, N>(args.x, int64_t(s.at(p.image, Index(d), Index(h), Index(w), s.in)) + channel);
      if (first)
        largest.start(v, tap);
      else
        largest.see(v, tap);
      first = false;
    };
    if constexpr (kWindow != 0) {
#pragma unroll
      for (int h = 0; h < kWindow; ++h)
#pragma unroll
        for (int w = 0; w < kWindow; ++w) {
          const D y = rows.first + h, x = columns.first + w;
          if (y >= rows.begin && y < rows.end && x >= columns.begin && x < columns.end)
            see(0, y, x, h * kWindow + w);
        }
    } else {
      for (D d = depth.begin; d < depth.end; ++d)
        for (D h = rows.begin; h < rows.end; ++h) {
          const D row = (d - depth.first) * s.kernel[1] + h - rows.first;
          for (D w = columns.begin; w < columns.end; ++w)
            see(d, h, w, int(row * s.kernel[2] + w - columns.first));
        }
    }
    const int64_t at = int64_t(s.at(p.image, p.d, p.h, p.w, s.out)) + channel;
    *reinterpret_cast<Pack<T, N>*>(static_cast<T*>(args.y) + at) = largest.best;
    if (args.places) largest.template keep<Place>(args.places, at);
  }
}

// The positions [begin, end) that see an element along an axis. The element's number in the window
// of position p is `shift - p * stride`.
template <class D>
struct Seeing {
  D begin, end, shift;
};
template <class Index>
__device__ Seeing<Signed<Index>> seeing(const Sizes<Index>& s, int axis, Index element,
                                        const Quotient<Index>& stride) {
  using D = Signed<Index>;
  const D shift = D(element) + s.pad[axis], behind = shift - s.kernel[axis];
  const D end = D(stride.of(Index(shift))) + 1, out = D(s.out[axis]);
  return {behind < 0 ? 0 : D(stride.of(Index(behind))) + 1, end < out ? end : out, shift};
}

template <class Index>
struct Strides {
  Quotient<Index> depth, height, width;
  explicit Strides(const PoolingSizes& s)
      : depth(s.stride[0]), height(s.stride[1]), width(s.stride[2]) {}
};

template <class T, int N, class Place, class Index>
__global__ void __launch_bounds__(kThreads)
    max_pooling_grad_kernel(PoolingArgs args, Sizes<Index> s, Grid<Index> grid,
                            Strides<Index> strides) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using D = Signed<Index>;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < grid.count; i += step) {
    const Point<Index> p(Index(i), grid);
    const Seeing<D> depth = seeing(s, 0, p.d, strides.depth),
                    rows = seeing(s, 1, p.h, strides.height),
                    columns = seeing(s, 2, p.w, strides.width);
    const int64_t channel = int64_t(p.pack) * N;
    C sums[N] = {};
    for (D d = depth.begin; d < depth.end; ++d)
      for (D h = rows.begin; h < rows.end; ++h)
        for (D w = columns.begin; w < columns.end; ++w) {
          const D row =
              (depth.shift - d * s.stride[0]) * s.kernel[1] + rows.shift - h * s.stride[1];
          const int tap = int(row * s.kernel[2] + columns.shift - w * s.stride[2]);
          const int64_t at = int64_t(s.at(p.image, Index(d), Index(h), Index(w), s.out)) + channel;
          const Pack<T, N> gy = load<T, N>(args.gy, at);
          const Pack<Place, N> places = load<Place, N>(args.places, at);
#pragma unroll
          for (int c = 0; c < N; ++c)
            if (int(places.v[c]) == tap) sums[c] += widen(gy.v[c]);
        }
    const int64_t at = int64_t(s.at(p.image, p.d, p.h, p.w, s.in)) + channel;
    Pack<T, N>* const gx = reinterpret_cast<Pack<T, N>*>(static_cast<T*>(args.gx) + at);
    Pack<T, N> result;
    if (args.accumulate) {
      result = *gx;
#pragma unroll
      for (int c = 0; c < N; ++c) result.v[c] = Narrow<T>::from(widen(result.v[c]) + sums[c]);
    } else {
#pragma unroll
      for (int c = 0; c < N; ++c) result.v[c] = Narrow<T>::from(sums[c]);
    }
    *gx = result;
  }
}

template <class T, class Place, class Index>
__global__ void __launch_bounds__(kThreads)
    max_pooling_pick_kernel(PoolingArgs args, Sizes<Index> s, Grid<Index> grid) {
  wait_for_previous_kernel();
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < grid.count; i += step) {
    const Point<Index> p(Index(i), grid);
    const int place = int(static_cast<const Place*>(args.places)[i]);
    using D = Signed<Index>;
    const D w = place % s.kernel[2], rest = place / s.kernel[2];
    const D h = rest % s.kernel[1], d = rest / s.kernel[1];
    const Index at = s.at(p.image, Index(D(p.d) * s.stride[0] - s.pad[0] + d),
                          Index(D(p.h) * s.stride[1] - s.pad[1] + h),
                          Index(D(p.w) * s.stride[2] - s.pad[2] + w), s.in);
    static_cast<T*>(args.y)[i] = static_cast<const T*>(args.x)[at + p.pack];
  }
}

// Choices of a launch ----------------------------------------------------------------------------

constexpr int kBlocks = 32;  // for each multiprocessor; more only wait

bool has_bytes(const PoolingSizes& s) { return s.taps() <= kMostTapsOfByte; }

// Whether every index and every sum with it fits 31 bits.
bool is_small(const PoolingSizes& s) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  int64_t in = s.images * s.channels, out = in;
  bool small = true;
  for (int k = 0; k < 3; ++k) {
    in *= s.in[k], out *= s.out[k];
    small = small && s.stride[k] <= kMost && s.in[k] + s.pad[k] + s.kernel[k] <= kMost;
  }
  return small && in <= kMost && out <= kMost;
}

// 16 bytes of channels at a time, where that divides them.
template <class T>
bool takes_packs(const PoolingArgs& a) {
  return a.aligned && a.sizes.channels % kPack<T> == 0;
}

// The height and width of a window of two axes that has a kernel of its own, or 0.
int square_window(const PoolingSizes& s) {
  const bool square =
      s.in[0] == 1 && s.kernel[0] == 1 && s.pad[0] == 0 && s.kernel[1] == s.kernel[2];
  return square && (s.kernel[1] == 2 || s.kernel[1] == 3) ? int(s.kernel[1]) : 0;
}

template <class T, int N, class Place, int kWindow, class Index>
void run_forward(const PoolingArgs& args, const Launch& launch) {
  const Grid<Index> grid(args.sizes, args.sizes.out, N);
  launch_kernel<&max_pooling_kernel<T, N, Place, kWindow, Index>>(
      loop_blocks(grid.count, kThreads, launch, kBlocks), kThreads, launch, args,
      Sizes<Index>(args.sizes), grid);
}

template <class T, int N>
void forward(const PoolingArgs& args, const Launch& launch) {
  if (!is_small(args.sizes)) {
    if (has_bytes(args.sizes)) return run_forward<T, N, uint8_t, 0, int64_t>(args, launch);
    return run_forward<T, N, int32_t, 0, int64_t>(args, launch);
  }
  switch (square_window(args.sizes)) {
    case 2:
      return run_forward<T, N, uint8_t, 2, uint32_t>(args, launch);
    case 3:
      return run_forward<T, N, uint8_t, 3, uint32_t>(args, launch);
    default:
      if (has_bytes(args.sizes)) return run_forward<T, N, uint8_t, 0, uint32_t>(args, launch);
      return run_forward<T, N, int32_t, 0, uint32_t>(args, launch);
  }
}

template <class T, int N, class Place, class Index>
void run_gradient(const PoolingArgs& args, const Launch& launch) {
  const Grid<Index> grid(args.sizes, args.sizes.in, N);
  launch_kernel<&max_pooling_grad_kernel<T, N, Place, Index>>(
      loop_blocks(grid.count, kThreads, launch, kBlocks), kThreads, launch, args,
      Sizes<Index>(args.sizes), grid, Strides<Index>(args.sizes));
}

template <class T, int N>
void gradient(const PoolingArgs& args, const Launch& launch) {
  const bool bytes = has_bytes(args.sizes);
  if (is_small(args.sizes)) {
    if (bytes) return run_gradient<T, N, uint8_t, uint32_t>(args, launch);
    return run_gradient<T, N, int32_t, uint32_t>(args, launch);
  }
  if (bytes) return run_gradient<T, N, uint8_t, int64_t>(args, launch);
  run_gradient<T, N, int32_t, int64_t>(args, launch);
}

template <class T, class Place, class Index>
void run_pick(const PoolingArgs& args, const Launch& launch) {
  const Grid<Index> grid(args.sizes, args.sizes.out, 1);
  launch_kernel<&max_pooling_pick_kernel<T, Place, Index>>(
      loop_blocks(grid.count, kThreads, launch, kBlocks), kThreads, launch, args,
      Sizes<Index>(args.sizes), grid);
}

template <class T, class Index>
void pick(const PoolingArgs& args, const Launch& launch) {
  if (has_bytes(args.sizes)) return run_pick<T, uint8_t, Index>(args, launch);
  run_pick<T, int32_t, Index>(args, launch);
}

}  // namespace

void launch_max_pooling(Float type, const PoolingArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, takes_packs<T>(args) ? forward<T, kPack<T>>(args, launch)
                                                 : forward<T, 1>(args, launch));
}

void launch_max_pooling_grad(Float type, const PoolingArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, takes_packs<T>(args) ? gradient<T, kPack<T>>(args, launch)
                                                 : gradient<T, 1>(args, launch));
}

void launch_max_pooling_pick(Float type, const PoolingArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, is_small(args.sizes) ? pick<T, uint32_t>(args, launch)
                                                 : pick<T, int64_t>(args, launch));
}

}  // namespace catena::gpu
