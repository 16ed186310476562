// Resampling by windows of 2 x 2 and 3 x 3 elements with strides of 1 and 2: average pooling and
// its gradient. A thread makes some rows of one column, so that it reads what they share once.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/resample.h"
#include "backends/cuda/pooling/resample_sums.cuh"
#include "backends/cuda/pooling/small_window.cuh"

namespace catena::gpu {
namespace {

// Of images and of the positions of the window over them.
struct Planes {
  int channels, height, width, out_height, out_width, pad_height, pad_width;
};

// Means of windows
// ---------------------------------------------------------------------------------

template <class T, int N, int kWindow, int kStride, int kRows>
__global__ void __launch_bounds__(kPoolingThreads)
    window_sums_kernel(ResampleArgs args, Planes s, Tiles tiles) {
  wait_for_previous_kernel();
  constexpr int kImageRows = (kRows - 1) * kStride + kWindow;
  const uint32_t number = blockIdx.x * kPoolingThreads + threadIdx.x;
  if (number >= tiles.count) return;
  const Tile t(number, tiles);
  const int first_row = t.row * kRows * kStride - s.pad_height;
  const int first_column = t.column * kStride - s.pad_width;
  Compute<T> columns[kRows][kWindow][N] = {};
#pragma unroll
  for (int i = 0; i < kImageRows; ++i) {
    const int h = first_row + i;
    const int row = (t.image * s.height + clamped(h, s.height)) * s.width;
    Pack<T, N> v[kWindow];
#pragma unroll
    for (int j = 0; j < kWindow; ++j)
      v[j] = load_pack<T, N>(args.x,
                             (row + clamped(first_column + j, s.width)) * s.channels + t.pack * N);
#pragma unroll
    for (int j = 0; j < kWindow; ++j) {
      if (!is_inside(h, s.height) || !is_inside(first_column + j, s.width)) continue;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (i < r * kStride || i >= r * kStride + kWindow) continue;
#pragma unroll
        for (int c = 0; c < N; ++c) columns[r][j][c] += widen(v[j].v[c]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = t.row * kRows + r;
    if (row >= s.out_height) return;
    Compute<T> sums[N] = {};
#pragma unroll
    for (int j = 0; j < kWindow; ++j)
#pragma unroll
      for (int c = 0; c < N; ++c) sums[c] += columns[r][j][c];
    const int at = ((t.image * s.out_height + row) * s.out_width + t.column) * s.channels;
    give_sums<T, N>(args, at + t.pack * N, sums, Compute<T>(args.divisor));
  }
}

// Their gradient
// -----------------------------------------------------------------------------------

// Rows of the image are counted from the padded edge in groups of kStride. The windows from
// kMost - 1 groups before the thread's first one on see its kGroups groups; of the o-th of them,
// row i has the number i + kStride * (kMost - 1 - o).
template <class T, int N, int kWindow, int kStride, int kGroups>
__global__ void __launch_bounds__(kPoolingThreads)
    window_sums_grad_kernel(ResampleArgs args, Planes s, Tiles tiles) {
  wait_for_previous_kernel();
  constexpr int kMost = (kWindow + kStride - 1) / kStride, kRows = kGroups * kStride;
  const uint32_t number = blockIdx.x * kPoolingThreads + threadIdx.x;
  if (number >= tiles.count) return;
  const Tile t(number, tiles);
  const int first_group = s.pad_height / kStride + t.row * kGroups;
  const int shift = t.column + s.pad_width;
  Compute<T> sums[kRows][N] = {};
#pragma unroll
  for (int p = 0; p < kMost; ++p) {
    const int position = shift / kStride - (kMost - 1) + p;
    const bool sees = shift - position * kStride < kWindow && is_inside(position, s.out_width);
    const int column = clamped(position, s.out_width) * s.channels + t.pack * N;
    Compute<T> of_column[kRows][N] = {};
#pragma unroll
    for (int o = 0; o < kGroups + kMost - 1; ++o) {
      const int row = first_group - (kMost - 1) + o;
      const int at = (t.image * s.out_height + clamped(row, s.out_height)) * s.out_width;
      const Pack<T, N> v = load_pack<T, N>(args.x, at * s.channels + column);
      if (!is_inside(row, s.out_height) || !sees) continue;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int tap = i + kStride * (kMost - 1 - o);
        if (tap < 0 || tap >= kWindow) continue;
#pragma unroll
        for (int c = 0; c < N; ++c) of_column[i][c] += widen(v.v[c]);
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int c = 0; c < N; ++c) sums[i][c] += of_column[i][c];
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int h = first_group * kStride + i - s.pad_height;
    if (!is_inside(h, s.height)) continue;
    const int at = ((t.image * s.height + h) * s.width + t.column) * s.channels;
    give_sums<T, N>(args, at + t.pack * N, sums[i], Compute<T>(args.divisor));
  }
}

// Choices of a launch
// ------------------------------------------------------------------------------

template <class T, int N, int kWindow, int kStride>
void run(const ResampleArgs& args, const Launch& launch) {
  const AxisMap &rows = args.row_map, &columns = args.column_map;
  const Planes s{int(args.channels), int(rows.in),  int(columns.in), int(rows.out),
                 int(columns.out),   int(rows.pad), int(columns.pad)};
  if (!args.adjoint) {
    constexpr int kRows = N == 1 ? 4 : 2;
    const Tiles tiles(args.images, args.channels / N, (rows.out + kRows - 1) / kRows, columns.out);
    launch_kernel<&window_sums_kernel<T, N, kWindow, kStride, kRows>>(
        tiles.blocks(), kPoolingThreads, launch, args, s, tiles);
    return;
  }
  constexpr int kGroups = (N == 1 ? 8 : 2) / kStride;
  const int64_t groups = (rows.in - 1 + rows.pad) / kStride - rows.pad / kStride + 1;
  const Tiles tiles(args.images, args.channels / N, (groups + kGroups - 1) / kGroups, columns.in);
  launch_kernel<&window_sums_grad_kernel<T, N, kWindow, kStride, kGroups>>(
      tiles.blocks(), kPoolingThreads, launch, args, s, tiles);
}

template <class T, int N>
bool try_run(const ResampleArgs& args, const Launch& launch) {
  const auto is = [&](int64_t kernel, int64_t stride) {
    const auto fits = [&](const AxisMap& m) {
      return m.rule == AxisRule::kWindow && m.kernel == kernel && m.stride == stride;
    };
    return fits(args.row_map) && fits(args.column_map);
  };
  if (is(2, 2))
    run<T, N, 2, 2>(args, launch);
  else if (is(3, 1))
    run<T, N, 3, 1>(args, launch);
  else if (is(3, 2))
    run<T, N, 3, 2>(args, launch);
  else
    return false;
  return true;
}

}  // namespace

bool launch_window_sums(Float type, const ResampleArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, return args.aligned && args.channels % kPack<T> == 0
                                       ? try_run<T, kPack<T>>(args, launch)
                                       : try_run<T, 1>(args, launch));
  return false;
}

}  // namespace catena::gpu
