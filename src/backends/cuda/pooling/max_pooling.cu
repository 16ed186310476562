// Max pooling. A thread makes a few results, or packs of 16 bytes of them along the channels.
#include "backends/cuda/pooling/pooling.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/largest.cuh"
#include "backends/cuda/pooling/running.cuh"
#include "backends/cuda/pooling/small_window.cuh"

namespace catena::gpu {
namespace {

// Any window --------------------------------------------------------------------------------------

template <class T, int N, class Place, class Index>
__global__ void __launch_bounds__(kPoolingThreads)
    any_window_kernel(PoolingArgs args, Sizes<Index> s, Grid<Index> grid) {
  wait_for_previous_kernel();
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < grid.count; i += step)
    pool_point<T, N, Place>(args, s, Point<Index>(Index(i), grid));
}

template <class T, int N, class Place, class Index>
void run_any_window(const PoolingArgs& args, const Launch& launch) {
  const Grid<Index> grid(args.sizes, args.sizes.out, N);
  launch_kernel<&any_window_kernel<T, N, Place, Index>>(
      loop_blocks(grid.count, kPoolingThreads, launch, kPoolingBlocks), kPoolingThreads, launch,
      args, Sizes<Index>(args.sizes), grid);
}

// Small windows -----------------------------------------------------------------------------------

// Elements before the image were read as its first ones: the number of the one that was meant.
template <int kWindow>
__device__ int tap_inside(int tap, int rows_before, int columns_before) {
  const int row = tap / kWindow, column = tap % kWindow;
  return (row < rows_before ? rows_before : row) * kWindow +
         (column < columns_before ? columns_before : column);
}

template <int N, int kWindow, class Best>
__device__ void keep_places(const PoolingArgs& args, int64_t at, const Best& best, int rows_before,
                            int columns_before) {
  Pack<uint8_t, N> kept;
#pragma unroll
  for (int i = 0; i < N; ++i) kept.v[i] = uint8_t(best.tap(i));
  if (rows_before > 0 || columns_before > 0) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      kept.v[i] = uint8_t(tap_inside<kWindow>(kept.v[i], rows_before, columns_before));
  }
  store_pack<uint8_t, N>(args.places, at, kept);
}

// kRows results below each other, found while the rows of the image go by.
template <class T, int N, int kWindow, int kStride, int kRows>
struct Results {
  static constexpr int kImageRows = (kRows - 1) * kStride + kWindow;
  Running<T, N> best[kRows];
  Watch<T, N> watch;

  // Row i of the image, with what the window sees of it.
  __device__ void see_row(int i, const Pack<T, N> (&v)[kWindow]) {
#pragma unroll
    for (int j = 0; j < kWindow; ++j) watch.see(v[j]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int in_window = i - r * kStride;
      if (in_window < 0 || in_window >= kWindow) continue;
#pragma unroll
      for (int j = 0; j < kWindow; ++j) best[r].see(v[j], in_window * kWindow + j);
    }
  }

  // `first_row` and `first_column`: those of the first window, which may be before the image.
  __device__ void store(const PoolingArgs& args, const Sizes<uint32_t>& s, const Tile& t,
                        int first_row, int first_column) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = t.row * kRows + r;
      if (row >= int(s.out[1])) return;
      best[r].settle_places();
      const int64_t at = int64_t(s.at(t.image, 0, row, t.column, s.out)) + t.pack * N;
      store_pack<T, N>(args.y, at, best[r].values());
      if (args.places)
        keep_places<N, kWindow>(args, at, best[r], -(first_row + r * kStride), -first_column);
    }
  }
  // The same where there is NaN.
  __device__ static void pool_again(const PoolingArgs& args, const Sizes<uint32_t>& s,
                                    const Tile& t) {
    const int end = (t.row + 1) * kRows, rows = int(s.out[1]);
#pragma unroll 1
    for (int row = t.row * kRows; row < end && row < rows; ++row)
      pool_point<T, N, uint8_t>(args, s, Point<uint32_t>(t.pack, t.column, row, t.image));
  }
};

// kStride 0: read from the sizes, for one row.
template <class T, int N, int kWindow, int kStride, int kRows>
__global__ void __launch_bounds__(kPoolingThreads)
    small_window_kernel(PoolingArgs args, Sizes<uint32_t> s, Tiles tiles) {
  wait_for_previous_kernel();
  const uint32_t number = blockIdx.x * kPoolingThreads + threadIdx.x;
  if (number >= tiles.count) return;
  const Tile t(number, tiles);
  const int channels = int(s.channels), height = int(s.in[1]), width = int(s.in[2]);
  const int first_row = t.row * kRows * (kStride ? kStride : s.stride[1]) - s.pad[1];
  const int first_column = t.column * (kStride ? kStride : s.stride[2]) - s.pad[2];
  int columns[kWindow];
#pragma unroll
  for (int j = 0; j < kWindow; ++j)
    columns[j] = clamped(first_column + j, width) * channels + t.pack * N;

  using Found = Results<T, N, kWindow, kStride, kRows>;
  Found results;
#pragma unroll
  for (int i = 0; i < Found::kImageRows; ++i) {
    const int row = (t.image * height + clamped(first_row + i, height)) * width * channels;
    Pack<T, N> v[kWindow];
#pragma unroll
    for (int j = 0; j < kWindow; ++j) v[j] = load_pack<T, N>(args.x, row + columns[j]);
    results.see_row(i, v);
  }
  if (results.watch.found()) return Found::pool_again(args, s, t);
  results.store(args, s, t, first_row, first_column);
}

template <class T, int N, int kWindow, int kStride>
void run_small_window(const PoolingArgs& args, const Launch& launch) {
  constexpr int kRows = kStride == 0 ? 1 : N == 1 ? 4 : 2;
  const PoolingSizes& s = args.sizes;
  const Tiles tiles(s.images, s.channels / N, (s.out[1] + kRows - 1) / kRows, s.out[2]);
  launch_kernel<&small_window_kernel<T, N, kWindow, kStride, kRows>>(
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
  else if (window == 3)
    run_small_window<T, N, 3, 0>(args, launch);
  else if (window == 2 && stride == 2)
    run_small_window<T, N, 2, 2>(args, launch);
  else if (window == 2)
    run_small_window<T, N, 2, 0>(args, launch);
  return window != 0;
}

template <class T, int N>
void forward(const PoolingArgs& args, const Launch& launch) {
  if (try_small_window<T, N>(args, launch)) return;
  with_types(args.sizes, [&](auto place, auto index) {
    run_any_window<T, N, decltype(place), decltype(index)>(args, launch);
  });
}

}  // namespace

void launch_max_pooling(Float type, const PoolingArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, takes_packs<T>(args) ? forward<T, kPack<T>>(args, launch)
                                                 : forward<T, 1>(args, launch));
}

}  // namespace catena::gpu
