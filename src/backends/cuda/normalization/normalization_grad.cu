// Batch normalization, backward: the sums of each channel, which read x and the gradient once, and
// the gradient of x, which reads them again and writes gx.
#include "backends/cuda/normalization/normalization.cuh"
#include "backends/cuda/normalization/normalization.h"

namespace catena::gpu {
namespace {

constexpr int kGradientPacks = 8;    // the least that a thread takes
constexpr int kGradientBlocks = 16;  // the most for a multiprocessor

// Sums of g (a) and of g * (x - mean) (b).
template <class C>
struct Sums {
  C n, a, b;
  __device__ void merge(const Sums& other) {
    a += other.a;
    b += other.b;
  }
};

// Packs of x and of the gradients, which are taken back through the relu that made y.
template <class T, int N, int U>
struct LoadedPacks {
  using C = Compute<T>;
  Pack<T, N> x[U], gy[U], y[U];
  bool relu;

  __device__ LoadedPacks(const void* x_base, const void* gy_base, const void* y_base,
                         const int64_t (&at)[U])
      : relu(y_base != nullptr) {
    load_packs(x_base, at, x);
    load_packs(gy_base, at, gy);
    if (relu) load_packs(y_base, at, y);
  }
  __device__ C gradient(int u, int k) const {
    return !relu || widen(y[u].v[k]) > C(0) ? widen(gy[u].v[k]) : C(0);
  }
};

template <class T, int N, int kChannels>
struct SumsBody {
  using C = Compute<T>;
  static constexpr int kAhead = packs_ahead<N, kChannels>(2), kResident = 4;
  const void *x, *gy, *y;
  C mean[kChannels];
  Sums<C> sums[kChannels];

  __device__ SumsBody(const NormalizationGradArgs& args, int64_t channel, bool active)
      : x(args.x), gy(args.gy), y(args.y) {
#pragma unroll
    for (int k = 0; k < kChannels; ++k) {
      mean[k] = active ? number_at(args.mean, channel + k, C(0)) : C(0);
      sums[k] = {C(0), C(0), C(0)};
    }
  }
  template <int U>
  __device__ void visit(const int64_t (&at)[U]) {
    const LoadedPacks<T, N, U> p(x, gy, y, at);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int c = k % kChannels;
        const C g = p.gradient(u, k);
        sums[c].a += g;
        sums[c].b = fused(g, widen(p.x[u].v[k]) - mean[c], sums[c].b);
      }
  }
  __device__ void finish(const NormalizationGradArgs& args, int64_t channel, int part, int parts) {
    store_rows<C>(args.partials, args.channels, channel, part, parts, sums);
  }
  __device__ void finish(const NormalizationGradArgs& args, int64_t channel, int part, int parts,
                         int across, bool active) {
    store_columns<C>(args.partials, args.channels, channel, part, parts, across, active, sums);
  }
};

template <class C>
__device__ void store_gradient(void* to, int64_t channel, C value, bool accumulate) {
  if (to == nullptr) return;
  C& target = static_cast<C*>(to)[channel];
  target = accumulate ? target + value : value;
}

template <class C>
__global__ void __launch_bounds__(kFinishThreads) finish_sums(NormalizationGradArgs args) {
  const int64_t channel = finish_channel();
  if (channel >= args.channels) return;  // whole warps leave
  const Sums<C> all = all_parts<C, Sums<C>>(args, channel, 1);
  if (threadIdx.x % 32 != 0) return;
  C* sums = static_cast<C*>(args.sums);
  sums[channel] = all.a;
  sums[args.channels + channel] = all.b;
  const C inverse = static_cast<const C*>(args.inverse_deviation)[channel];
  store_gradient(args.g_gamma, channel, all.b * inverse, args.accumulate_gamma);
  store_gradient(args.g_beta, channel, all.a, args.accumulate_beta);
}

// gx = of_g * g + of_x * (x - mean) + constant.
template <class T, int N, int kChannels>
struct GradientBody {
  using C = Compute<T>;
  static constexpr int kAhead = packs_ahead<N, kChannels>(2), kResident = kChannels > 4 ? 3 : 4;
  const void *x, *gy, *y;
  void *gx, *g_residual;
  C mean[kChannels], of_g[kChannels], of_x[kChannels], constant[kChannels];

  __device__ GradientBody(const NormalizationGradArgs& args, int64_t channel, bool active)
      : x(args.x), gy(args.gy), y(args.y), gx(args.gx), g_residual(args.g_residual) {
    if (!active) return;
    const C m = C(args.outer * args.inner);
#pragma unroll
    for (int k = 0; k < kChannels; ++k) {
      const int64_t c = channel + k;
      const C inverse = number_at(args.inverse_deviation, c, C(0));
      mean[k] = number_at(args.mean, c, C(0));
      of_g[k] = number_at(args.gamma, c, C(1)) * inverse;
      of_x[k] = constant[k] = C(0);
      if (args.fixed) continue;
      constant[k] = -of_g[k] * (number_at(args.sums, c, C(0)) / m);
      // In this order no intermediate result overflows unless the final one does.
      of_x[k] =
          -of_g[k] * (inverse * (number_at(args.sums, args.channels + c, C(0)) / m)) * inverse;
    }
  }
  template <int U>
  __device__ void visit(const int64_t (&at)[U]) {
    const LoadedPacks<T, N, U> p(x, gy, y, at);
#pragma unroll
    for (int u = 0; u < U; ++u) {
      Pack<T, N> result, kept;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int c = k % kChannels;
        const C g = p.gradient(u, k);
        const C rest = fused(of_x[c], widen(p.x[u].v[k]) - mean[c], constant[c]);
        result.v[k] = Narrow<T>::from(fused(of_g[c], g, rest));
        kept.v[k] = Narrow<T>::from(g);
      }
      static_cast<Pack<T, N>*>(gx)[at[u]] = result;
      if (g_residual) static_cast<Pack<T, N>*>(g_residual)[at[u]] = kept;
    }
  }
  __device__ void finish(const NormalizationGradArgs&, int64_t, int, int) {}
  __device__ void finish(const NormalizationGradArgs&, int64_t, int, int, int, bool) {}
};

}  // namespace

void launch_normalization_sums(Float type, const NormalizationGradArgs& args,
                               const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const Walk walk(args.channels, args.inner, args.aligned, kPack<T>, args.splits);
    run_walk<T, SumsBody>(walk, args, launch);
    finish_sums<Compute<T>>
        <<<finish_blocks(args.channels), kFinishThreads, 0, launch.stream>>>(args);
  })
}

void launch_normalization_gradient(Float type, const NormalizationGradArgs& args,
                                   const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const Walk walk(args.outer, args.channels, args.inner, args.aligned, kPack<T>, kGradientPacks,
                    kGradientBlocks, launch);
    run_walk<T, GradientBody>(walk, args, launch);
  })
}

}  // namespace catena::gpu
