// Part of a row that a thread handles in the gradients of plain rows.
#pragma once

#include "backends/cuda/normalization/parameter_lines.cuh"
#include "backends/cuda/normalization/plain_rows.cuh"

namespace catena::gpu {
namespace {

// A thread's packs of x and gy of a row, and the row's statistics. kAdd: the gradient of the sum is
// added to that of x.
template <class T, int kPacks, bool kAdd>
struct GradientRow {
  using C = Compute<T>;
  Words x[kPacks], gy[kPacks], gsum[kAdd ? kPacks : 1];
  RowStatistics<C> s;

  // Those of the row that is so many steps ahead.
  __device__ void load(const RowNormalizationArgs& args, const PlainWalk& walk, int ahead) {
    walk.load(args.x, ahead, x);
    walk.load(args.gy, ahead, gy);
    s = load_statistics<C>(args, walk, ahead);
  }
  // Early enough to be there when the row's sums are.
  __device__ void load_sum(const RowNormalizationArgs& args, const PlainWalk& walk, int ahead) {
    if constexpr (kAdd) walk.load(args.gsum, ahead, gsum);
  }
  // Writes the gradient of x; gamma(e) is that of the thread's element e.
  template <class Gamma>
  __device__ void store(const RowNormalizationArgs& args, const PlainWalk& walk,
                        const RowGradient<C>& gradient, Gamma gamma) const {
    constexpr int N = kPack<T>;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const auto px = elements<T>(x[i]), pgy = elements<T>(gy[i]);
      Pack<T, N> result, of_sum;
      if constexpr (kAdd) of_sum = elements<T>(gsum[i]);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const C h = gamma(i * N + k) * widen(pgy.v[k]);
        const C rest = fused(gradient.of_x, widen(px.v[k]) - s.mean, gradient.constant);
        C of_x = fused(s.inverse, h, rest);
        if constexpr (kAdd) of_x += widen(of_sum.v[k]);
        result.v[k] = Narrow<T>::from(of_x);
      }
      walk.store(args.y, i, result);
    }
  }
};

}  // namespace
}  // namespace catena::gpu
