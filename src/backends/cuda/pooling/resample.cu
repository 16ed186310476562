// Resampling. A thread makes one element of y, or a pack of 16 bytes of them along the channels, in
// one image after the other; it gathers what gives the element, so that no two threads add to one
// number.
#include "backends/cuda/pooling/resample.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/pooling_index.cuh"
#include "backends/cuda/pooling/resample_axis.cuh"
#include "backends/cuda/pooling/resample_sums.cuh"

namespace catena::gpu {
namespace {

// The images in the type of the indices.
template <class Index>
struct Images {
  Index count, threads;    // as many threads share the images of a place
  Index channels, width;   // of x
  int64_t x_size, y_size;  // of one image, channels included
  Quotient<Index> packs;   // of an image of y
  Images(const ResampleArgs& a, int64_t threads, int64_t packs)
      : count(Index(a.images)),
        threads(Index(threads)),
        channels(Index(a.channels)),
        width(Index(a.columns.limit)),
        x_size(a.rows.limit * a.columns.limit * a.channels),
        y_size(a.rows.count * a.columns.count * a.channels),
        packs(packs) {}
};

// The weights of the first elements of a range, in registers.
template <class C, class D>
struct FirstWeights {
  static constexpr int kCount = 4;
  C of[kCount];
  __device__ explicit FirstWeights(C all) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) of[k] = all;
  }
  template <class Index>
  __device__ FirstWeights(const Axis<Index>& axis, D o, const AxisSpan<D>& span) {
#pragma unroll
    for (int k = 0; k < kCount; ++k)
      of[k] = span.begin + k < span.end ? axis.template weight<C>(o, span.begin + k) : C(0);
  }
  // Of element `k` of the range, computed where it is not kept.
  template <class Index>
  __device__ C at(D k, const Axis<Index>& axis, D o, const AxisSpan<D>& span) const {
    if (k >= kCount) return axis.weighted ? axis.template weight<C>(o, span.begin + k) : C(1);
    C weight = of[0];
#pragma unroll
    for (int j = 1; j < kCount; ++j) weight = k == j ? of[j] : weight;
    return weight;
  }
};

// What the elements of one place of all images have in common.
template <class T, class Index>
struct Place {
  using C = Compute<T>;
  using D = Signed<Index>;
  Index h, w;
  AxisSpan<D> down, along;
  FirstWeights<C, D> of_rows{C(1)}, of_columns{C(1)};
  __device__ Place(Index h, Index w, const Axis<Index>& rows, const Axis<Index>& columns)
      : h(h), w(w), down(rows.span(D(h))), along(columns.span(D(w))) {
    if (!rows.weighted) return;
    of_rows = FirstWeights<C, D>(rows, D(h), down);
    of_columns = FirstWeights<C, D>(columns, D(w), along);
  }
};

template <int N, class C, class T>
__device__ void add_weighted(C (&sums)[N], const Pack<T, N>& v, C weight) {
#pragma unroll
  for (int c = 0; c < N; ++c) sums[c] += widen(v.v[c]) * weight;
}

// The sum down a column: `first` is its element in the first row of the range.
template <class T, int N, class Index>
__device__ void sum_column(const ResampleArgs& args, const Place<T, Index>& p,
                           const Axis<Index>& rows, int64_t first, Index row_size,
                           Compute<T> (&column)[N]) {
  using C = Compute<T>;
  using D = Signed<Index>;
  constexpr int kFirst = FirstWeights<C, D>::kCount;
  const D count = p.down.end - p.down.begin;
#pragma unroll
  for (int k = 0; k < kFirst; ++k)
    if (k < count)
      add_weighted<N>(column, load_pack<T, N>(args.x, first + int64_t(Index(k) * row_size)),
                      p.of_rows.of[k]);
  for (D k = kFirst; k < count; ++k)
    add_weighted<N>(column, load_pack<T, N>(args.x, first + int64_t(Index(k) * row_size)),
                    p.of_rows.at(k, rows, D(p.h), p.down));
}

template <class T, int N, class Index>
__global__ void __launch_bounds__(kPoolingThreads)
    resample_kernel(ResampleArgs args, Images<Index> images, Axis<Index> rows, Axis<Index> columns,
                    Grid<Index> grid) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using D = Signed<Index>;
  const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= grid.count * images.threads) return;
  // The number of a pack is its place in an image of y.
  Index first_image = Index(number);
  const Index pack = images.packs.split(first_image);
  const Point<Index> point(pack, grid);
  const Place<T, Index> p(point.h, point.w, rows, columns);
  const Index row_size = images.width * images.channels;
  const int64_t in_image = int64_t(Index(p.down.begin) * row_size) + int64_t(point.pack) * N;
  C divisor = C(args.divisor);
  if (rows.weights == AxisWeights::kMean)
    divisor *= C((p.down.end - p.down.begin) * (p.along.end - p.along.begin));
  for (Index image = first_image; image < images.count; image += images.threads) {
    C sums[N] = {};
    for (D w = p.along.begin; w < p.along.end; ++w) {
      C column[N] = {};
      const int64_t first =
          int64_t(image) * images.x_size + in_image + int64_t(Index(w) * images.channels);
      sum_column<T, N>(args, p, rows, first, row_size, column);
      const C weight = p.of_columns.at(w - p.along.begin, columns, D(p.w), p.along);
#pragma unroll
      for (int c = 0; c < N; ++c) sums[c] += column[c] * weight;
    }
    give_sums<T, N>(args, int64_t(image) * images.y_size + int64_t(pack) * N, sums, divisor);
  }
}

// Columns of a range that the slot promises to sum along its rows: see catena/kernels/resample.h.
constexpr int kWideRange = 4;

// The same of ranges without weights, of which some are wide. Each of the outer sums is one of
// inner ones: along the rows of a wide range, down the columns of others.
template <class T, int N, class Index>
__global__ void __launch_bounds__(kPoolingThreads)
    wide_ranges_kernel(ResampleArgs args, Images<Index> images, Axis<Index> rows,
                       Axis<Index> columns, Grid<Index> grid) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using D = Signed<Index>;
  const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= grid.count * images.threads) return;
  Index first_image = Index(number);
  const Index pack = images.packs.split(first_image);
  const Point<Index> point(pack, grid);
  const AxisSpan<D> down = rows.span(D(point.h)), along = columns.span(D(point.w));
  const D height = down.end - down.begin, width = along.end - along.begin;
  const bool wide = width >= D(kWideRange);
  const D outer = wide ? height : width, inner = wide ? width : height;
  const int64_t column = int64_t(images.channels), row = int64_t(images.width) * column;
  const int64_t outer_step = wide ? row : column, inner_step = wide ? column : row;
  const int64_t in_image =
      int64_t(down.begin) * row + int64_t(along.begin) * column + int64_t(point.pack) * N;
  C divisor = C(args.divisor);
  if (rows.weights == AxisWeights::kMean) divisor *= C(height * width);
  for (Index image = first_image; image < images.count; image += images.threads) {
    C sums[N] = {};
    int64_t first = int64_t(image) * images.x_size + in_image;
    for (D o = 0; o < outer; ++o, first += outer_step) {
      C part[N] = {};
      int64_t at = first;
#pragma unroll 4
      for (D i = 0; i < inner; ++i, at += inner_step) {
        const Pack<T, N> v = load_pack<T, N>(args.x, at);
#pragma unroll
        for (int c = 0; c < N; ++c) part[c] += widen(v.v[c]);
      }
#pragma unroll
      for (int c = 0; c < N; ++c) sums[c] += part[c];
    }
    give_sums<T, N>(args, int64_t(image) * images.y_size + int64_t(pack) * N, sums, divisor);
  }
}

// Whether all numbers that an axis computes with fit 31 bits.
bool is_small(const AxisRanges& r) {
  constexpr int64_t kMost = int64_t{1} << 29;
  const auto fits = [&](int64_t v) { return v < kMost && v > -kMost; };
  const int64_t most = (r.count > r.limit ? r.count : r.limit) + 1;
  const auto product_fits = [&](int64_t v) { return fits(v) && fits(most) && fits(v * most); };
  return product_fits(r.scale) && fits(r.begin_shift) && fits(r.end_shift) && fits(r.divisor) &&
         product_fits(r.slope) && fits(r.offset) && product_fits(r.unit);
}
bool is_small(const ResampleArgs& a) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  const int64_t planes = a.images * a.channels;
  return is_small(a.rows) && is_small(a.columns) &&
         planes * a.rows.count * a.columns.count <= kMost &&
         planes * a.rows.limit * a.columns.limit <= kMost;
}

template <class T, int N, class Index>
void run(const ResampleArgs& args, const Launch& launch) {
  PoolingSizes s{};
  s.images = 1, s.channels = args.channels;
  const Grid<Index> grid(s, {1, args.rows.count, args.columns.count}, N);
  // So many threads for each place that the device is busy; the more images a thread has, the less
  // each costs.
  const int64_t busy = int64_t(launch.multiprocessors) * kPoolingBlocks * kPoolingThreads;
  const int64_t wanted = (busy + grid.count - 1) / grid.count;
  const Images<Index> images(args, wanted < args.images ? wanted : args.images, grid.count);
  const int64_t blocks = (grid.count * images.threads + kPoolingThreads - 1) / kPoolingThreads;
  const Axis<Index> rows(args.rows), columns(args.columns);
  if (args.channels > 1 && !columns.weighted && longest(args.columns) >= kWideRange)
    launch_kernel<&wide_ranges_kernel<T, N, Index>>(unsigned(blocks), kPoolingThreads, launch, args,
                                                    images, rows, columns, grid);
  else
    launch_kernel<&resample_kernel<T, N, Index>>(unsigned(blocks), kPoolingThreads, launch, args,
                                                 images, rows, columns, grid);
}

template <class T, int N>
void run(const ResampleArgs& args, const Launch& launch) {
  is_small(args) ? run<T, N, uint32_t>(args, launch) : run<T, N, int64_t>(args, launch);
}

}  // namespace

void launch_resample(Float type, const ResampleArgs& args, const Launch& launch) {
  if (is_small(args) &&
      (launch_resample_planes(type, args, launch) || launch_window_sums(type, args, launch) ||
       launch_resample_rows(type, args, launch)))
    return;
  CATENA_FLOAT_SWITCH(type, args.aligned && args.channels % kPack<T> == 0
                                ? run<T, kPack<T>>(args, launch)
                                : run<T, 1>(args, launch));
}

}  // namespace catena::gpu
