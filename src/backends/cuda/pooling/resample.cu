// Resampling. A thread makes one element of y, or a pack of 16 bytes of them along the channels; it
// gathers what gives the element, so that no two threads add to one number.
#include "backends/cuda/pooling/resample.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/pooling_index.cuh"
#include "backends/cuda/pooling/resample_sums.cuh"

namespace catena::gpu {
namespace {

// An axis in the type of the indices.
template <class Index>
struct Axis {
  using D = Signed<Index>;
  Quotient<Index> by;
  D limit, scale, begin_shift, end_shift;
  D slope, offset, unit, in;
  bool transposed;
  AxisWeights weights;
  explicit Axis(const AxisRanges& r)
      : by(r.divisor),
        limit(D(r.limit)),
        scale(D(r.scale)),
        begin_shift(D(r.begin_shift)),
        end_shift(D(r.end_shift)),
        slope(D(r.slope)),
        offset(D(r.offset)),
        unit(D(r.unit)),
        in(D(r.in)),
        transposed(r.transposed),
        weights(r.weights) {}
  __device__ D quotient(D n) const {
    if (n < 0) return 0;
    const D q = D(by.of(Index(n)));
    return q < limit ? q : limit;
  }
  __device__ AxisSpan<D> span(D o) const {
    const D n = o * scale;
    return {quotient(n + begin_shift), quotient(n + end_shift)};
  }
  __device__ bool is_weighted() const {
    return weights == AxisWeights::kLinear || weights == AxisWeights::kPart;
  }
  // Of element i in the sum for element o.
  template <class C>
  __device__ C weight(D o, D i) const {
    if (weights == AxisWeights::kPart)
      return C(1) / C(((i + 1) * slope + unit - 1) / unit - i * slope / unit);
    const D to = transposed ? i : o, from = transposed ? o : i;
    const D place = to * slope + offset, most = (in - 1) * unit;
    const D distance = (place < 0 ? 0 : place < most ? place : most) - from * unit;
    return C(unit - (distance < 0 ? -distance : distance)) / C(unit);
  }
};

// x and y in the type of the indices.
template <class Index>
struct Images {
  Index channels, height, width;  // of x
};

template <class T, int N, class Index>
__global__ void __launch_bounds__(kPoolingThreads)
    resample_kernel(ResampleArgs args, Images<Index> x, Axis<Index> rows, Axis<Index> columns,
                    Grid<Index> grid) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using D = Signed<Index>;
  const bool weighted = rows.is_weighted();
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < grid.count; i += step) {
    const Point<Index> p(Index(i), grid);
    const AxisSpan<D> down = rows.span(D(p.h)), along = columns.span(D(p.w));
    const int64_t image = int64_t(p.image * x.height * x.width * x.channels) + int64_t(p.pack) * N;
    C sums[N] = {};
    for (D w = along.begin; w < along.end; ++w) {
      C column[N] = {};
      for (D h = down.begin; h < down.end; ++h) {
        const int64_t at = image + int64_t((Index(h) * x.width + Index(w)) * x.channels);
        const Pack<T, N> v = load_pack<T, N>(args.x, at);
        if (weighted) {
          const C weight = rows.template weight<C>(D(p.h), h);
#pragma unroll
          for (int c = 0; c < N; ++c) column[c] += widen(v.v[c]) * weight;
        } else {
#pragma unroll
          for (int c = 0; c < N; ++c) column[c] += widen(v.v[c]);
        }
      }
      const C weight = weighted ? columns.template weight<C>(D(p.w), w) : C(1);
#pragma unroll
      for (int c = 0; c < N; ++c) sums[c] += column[c] * weight;
    }
    C divisor = C(args.divisor);
    if (rows.weights == AxisWeights::kMean)
      divisor *= C((down.end - down.begin) * (along.end - along.begin));
    // The number of a pack is its place in y.
    give_sums<T, N>(args, i * N, sums, divisor);
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
  s.images = args.images, s.channels = args.channels;
  const Grid<Index> grid(s, {1, args.rows.count, args.columns.count}, N);
  const Images<Index> x{Index(args.channels), Index(args.rows.limit), Index(args.columns.limit)};
  launch_kernel<&resample_kernel<T, N, Index>>(
      loop_blocks(grid.count, kPoolingThreads, launch, kPoolingBlocks), kPoolingThreads, launch,
      args, x, Axis<Index>(args.rows), Axis<Index>(args.columns), grid);
}

template <class T, int N>
void run(const ResampleArgs& args, const Launch& launch) {
  is_small(args) ? run<T, N, uint32_t>(args, launch) : run<T, N, int64_t>(args, launch);
}

}  // namespace

void launch_resample(Float type, const ResampleArgs& args, const Launch& launch) {
  if (is_small(args) && launch_window_sums(type, args, launch)) return;
  CATENA_FLOAT_SWITCH(type, args.aligned && args.channels % kPack<T> == 0
                                ? run<T, kPack<T>>(args, launch)
                                : run<T, 1>(args, launch));
}

}  // namespace catena::gpu
