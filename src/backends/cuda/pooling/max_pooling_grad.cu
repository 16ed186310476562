// The gradient of max pooling is gathered by the elements of the image, so that no two threads add
// to one number and equal calls give equal bits.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/pooling.h"
#include "backends/cuda/pooling/small_window.cuh"

namespace catena::gpu {
namespace {

// Writes sums to gx, or adds them to it.
template <class T, int N>
__device__ void give(const PoolingArgs& args, int64_t at, const Compute<T> (&sums)[N]) {
  Pack<T, N> result;
  if (args.accumulate) {
    result = load_pack<T, N>(args.gx, at);
#pragma unroll
    for (int c = 0; c < N; ++c) result.v[c] = Narrow<T>::from(widen(result.v[c]) + sums[c]);
  } else {
#pragma unroll
    for (int c = 0; c < N; ++c) result.v[c] = Narrow<T>::from(sums[c]);
  }
  store_pack<T, N>(args.gx, at, result);
}

// Any window --------------------------------------------------------------------------------------

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
__global__ void __launch_bounds__(kPoolingThreads)
    any_window_kernel(PoolingArgs args, Sizes<Index> s, Grid<Index> grid, Strides<Index> strides) {
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
          const Pack<T, N> gy = load_pack<T, N>(args.gy, at);
          const Pack<Place, N> places = load_pack<Place, N>(args.places, at);
#pragma unroll
          for (int c = 0; c < N; ++c)
            if (int(places.v[c]) == tap) sums[c] += widen(gy.v[c]);
        }
    give<T, N>(args, int64_t(s.at(p.image, p.d, p.h, p.w, s.in)) + channel, sums);
  }
}

template <class T, int N, class Place, class Index>
void run_any_window(const PoolingArgs& args, const Launch& launch) {
  const Grid<Index> grid(args.sizes, args.sizes.in, N);
  launch_kernel<&any_window_kernel<T, N, Place, Index>>(
      loop_blocks(grid.count, kPoolingThreads, launch, kPoolingBlocks), kPoolingThreads, launch,
      args, Sizes<Index>(args.sizes), grid, Strides<Index>(args.sizes));
}

// Small windows -----------------------------------------------------------------------------------

// The bytes of a pack, four in a register.
template <int N>
struct PlaceBytes {
  static constexpr int kWords = N > 4 ? N / 4 : 1;
  uint32_t words[kWords];

  __device__ PlaceBytes(const void* places, int64_t at) {
    if constexpr (N == 1) words[0] = load_pack<uint8_t, 1>(places, at).v[0];
    if constexpr (N == 2)
      words[0] = *reinterpret_cast<const uint16_t*>(static_cast<const uint8_t*>(places) + at);
    if constexpr (N >= 4) {
      const auto* from = static_cast<const uint8_t*>(places) + at;
      const auto loaded = *reinterpret_cast<const Pack<uint32_t, kWords>*>(from);
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = loaded.v[i];
    }
  }
  // With all bits of `mask` none is the number of an element.
  __device__ void hide(uint32_t mask) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] |= mask;
  }
  __device__ int operator[](int i) const { return int(words[i / 4] >> (8 * (i % 4)) & 0xffu); }
};

// Along an axis, tile q has the elements at the distances q * kStride + i from the padded edge. The
// windows at q - kMost + 1 to q + kTiles - 1 see the elements of kTiles tiles; in window o of these
// element i has the number number(i, o), if that is one of [0, kWindow).
template <int kWindow, int kStride>
struct Overlap {
  static constexpr int kMost = (kWindow + kStride - 1) / kStride;
  static __device__ constexpr int number(int i, int o) { return i + kStride * (kMost - 1 - o); }
  static __device__ constexpr bool has(int number) { return number >= 0 && number < kWindow; }
};

// The element from which a thread's tiles start: its tile, and its number in there.
struct Start {
  int tile_row, tile_column, rest;
};

// The columns of windows that see the tiles.
template <int kWindow, int kStride, int kWide>
struct WindowColumns {
  using O = Overlap<kWindow, kStride>;
  static constexpr int kCount = (kWide ? kWide : 1) + O::kMost - 1;
  int offsets[kCount];  // in a row of gy
  uint32_t hidden[kCount];

  __device__ WindowColumns(const Sizes<uint32_t>& s, const Start& start, int pack_offset) {
#pragma unroll
    for (int o = 0; o < kCount; ++o) {
      const int position = start.tile_column - (O::kMost - 1) + o, width = int(s.out[2]);
      offsets[o] = clamped(position, width) * int(s.channels) + pack_offset;
      const bool sees = kWide != 0 || O::has(start.rest + O::number(0, o));
      hidden[o] = is_inside(position, width) && sees ? 0u : ~0u;
    }
  }
};

// Sums of the elements in kHigh tiles below each other and kWide beside each other. kWide = 0: in
// one column, so that the threads of a warp write neighbours where there are no packs.
template <class T, int N, int kWindow, int kStride, int kHigh, int kWide>
struct TileSums {
  using O = Overlap<kWindow, kStride>;
  static constexpr int kRows = kHigh * kStride, kColumns = kWide ? kWide * kStride : 1;
  static constexpr int kWindowRows = kHigh + O::kMost - 1;
  Compute<T> sums[kRows][kColumns][N] = {};

  // What the windows in row oh and column ow give to the elements.
  __device__ void add(int oh, int ow, int rest, const PlaceBytes<N>& places, const Pack<T, N>& gy) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int h = O::number(i, oh), w = O::number(j, ow);
        if (!O::has(h) || !O::has(w)) continue;
        const int tap = h * kWindow + w + rest;
#pragma unroll
        for (int c = 0; c < N; ++c)
          if (places[c] == tap) sums[i][j][c] += widen(gy.v[c]);
      }
  }

  __device__ void store(const PoolingArgs& args, const Sizes<uint32_t>& s, const Tile& t,
                        const Start& start) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int h = start.tile_row * kStride + i - s.pad[1],
                  w = start.tile_column * kStride + start.rest + j - s.pad[2];
        if (!is_inside(h, int(s.in[1])) || !is_inside(w, int(s.in[2]))) continue;
        give<T, N>(args, int64_t(s.at(t.image, 0, h, w, s.in)) + t.pack * N, sums[i][j]);
      }
  }
};

template <int kStride, int kHigh, int kWide>
__device__ Start start_of(const Tile& t, const Sizes<uint32_t>& s) {
  const int row = s.pad[1] / kStride + t.row * kHigh;
  if (kWide != 0) return {row, s.pad[2] / kStride + t.column * kWide, 0};
  const uint32_t distance = uint32_t(t.column + s.pad[2]);
  return {row, int(distance / kStride), int(distance % kStride)};
}

template <class T, int N, int kWindow, int kStride, int kHigh, int kWide>
__global__ void __launch_bounds__(kPoolingThreads)
    small_window_kernel(PoolingArgs args, Sizes<uint32_t> s, Tiles tiles) {
  wait_for_previous_kernel();
  using Sums = TileSums<T, N, kWindow, kStride, kHigh, kWide>;
  using Columns = WindowColumns<kWindow, kStride, kWide>;
  const uint32_t number = blockIdx.x * kPoolingThreads + threadIdx.x;
  if (number >= tiles.count) return;
  const Tile t(number, tiles);
  const Start start = start_of<kStride, kHigh, kWide>(t, s);
  const Columns columns(s, start, t.pack * N);
  Sums sums;
#pragma unroll
  for (int oh = 0; oh < Sums::kWindowRows; ++oh) {
    const int position = start.tile_row - (Sums::O::kMost - 1) + oh, height = int(s.out[1]);
    const int row =
        (t.image * height + clamped(position, height)) * int(s.out[2]) * int(s.channels);
    const uint32_t hidden = is_inside(position, height) ? 0u : ~0u;
#pragma unroll
    for (int ow = 0; ow < Columns::kCount; ++ow) {
      const int at = row + columns.offsets[ow];
      PlaceBytes<N> places(args.places, at);
      places.hide(hidden | columns.hidden[ow]);
      sums.add(oh, ow, start.rest, places, load_pack<T, N>(args.gy, at));
    }
  }
  sums.store(args, s, t, start);
}

// Tiles of kStride elements along an axis that have elements of the image.
int64_t tiles_along(const PoolingSizes& s, int axis, int64_t stride) {
  return (s.in[axis] - 1 + s.pad[axis]) / stride - s.pad[axis] / stride + 1;
}

template <class T, int N, int kWindow, int kStride>
void run_small_window(const PoolingArgs& args, const Launch& launch) {
  constexpr int kHigh = (N == 1 ? 8 : 2) / kStride, kWide = N == 1 ? 0 : 2 / kStride;
  const PoolingSizes& s = args.sizes;
  const int64_t rows = (tiles_along(s, 1, kStride) + kHigh - 1) / kHigh;
  const int64_t columns =
      kWide == 0 ? s.in[2] : (tiles_along(s, 2, kStride) + kWide - 1) / (kWide ? kWide : 1);
  const Tiles tiles(s.images, s.channels / N, rows, columns);
  launch_kernel<&small_window_kernel<T, N, kWindow, kStride, kHigh, kWide>>(
      tiles.blocks(), kPoolingThreads, launch, args, Sizes<uint32_t>(s), tiles);
}

// Choices of a launch ----------------------------------------------------------------------------

template <class T, int N>
bool try_small_window(const PoolingArgs& args, const Launch& launch) {
  const int window = small_window(args.sizes), stride = small_stride(args.sizes);
  if (window == 3 && stride == 2)
    run_small_window<T, N, 3, 2>(args, launch);
  else if (window == 3 && stride == 1)
    run_small_window<T, N, 3, 1>(args, launch);
  else if (window == 2 && stride == 2)
    run_small_window<T, N, 2, 2>(args, launch);
  else
    return false;
  return true;
}

template <class T, int N>
void gradient(const PoolingArgs& args, const Launch& launch) {
  if (try_small_window<T, N>(args, launch)) return;
  with_types(args.sizes, [&](auto place, auto index) {
    run_any_window<T, N, decltype(place), decltype(index)>(args, launch);
  });
}

}  // namespace

void launch_max_pooling_grad(Float type, const PoolingArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, takes_packs<T>(args) ? gradient<T, kPack<T>>(args, launch)
                                                 : gradient<T, 1>(args, launch));
}

}  // namespace catena::gpu
