// Batch normalization, backward: the sums of each channel, which read x and the gradient once, and
// the gradient of x, which reads them again and writes gx.
#include <type_traits>

#include "backends/cuda/normalization/normalization.h"
#include "backends/cuda/normalization/partials.cuh"
#include "backends/cuda/normalization/relu_mask.cuh"

namespace catena::gpu {
namespace {

constexpr int kGradientPacks = 8;  // the least that a thread takes

template <class C>
__device__ void store_gradient(void* to, int64_t channel, C value, bool accumulate) {
  if (to == nullptr) return;
  C& target = static_cast<C*>(to)[channel];
  target = accumulate ? target + value : value;
}

// Sums of g (v[0]) and of g * (x - mean) (v[1]).
template <class C>
struct Sums {
  static constexpr int kNumbers = 2;
  C n, v[kNumbers];
  __device__ void merge(const Sums& other) {
    v[0] += other.v[0];
    v[1] += other.v[1];
  }
  __device__ void store(const NormalizationGradArgs& args, int64_t channel) const {
    // The mean of the sums lacks its rest.
    const C centred = fused(-number_at(args.mean_rest, channel, C(0)), v[0], v[1]);
    C* sums = static_cast<C*>(args.sums);
    sums[channel] = v[0] * C(args.sums_weight);
    sums[args.channels + channel] = centred * C(args.sums_weight);
    const C inverse = static_cast<const C*>(args.inverse_deviation)[channel];
    store_gradient(args.g_gamma, channel, centred * inverse, args.accumulate_gamma);
    store_gradient(args.g_beta, channel, v[0], args.accumulate_beta);
  }
};

// Packs of x and of the gradients of y.
template <class T, int N, int U>
struct LoadedPacks {
  Pack<T, N> x[U], gy[U];

  __device__ LoadedPacks(const void* from_x, const void* from_gy, const int64_t (&at)[U]) {
    load_packs(from_x, at, x);
    load_packs(from_gy, at, gy);
  }
};

template <class T, int N, int kChannels, Relu kRelu>
struct SumsBody {
  using C = Compute<T>;
  static constexpr Order kOrder = Order::kForward;
  static constexpr int kAhead = packs_ahead(sizeof(Pack<T, N>), 2);
  const void *x, *gy;
  ReluGate<T, N, kChannels, kRelu> relu;
  C mean[kChannels];
  Sums<C> sums[kChannels];

  __device__ SumsBody(const NormalizationGradArgs& args, int64_t first, int64_t inner, bool active)
      : x(args.x), gy(args.gy), relu(args) {
    each_channel<kChannels>(first, inner, [&](int k, int64_t c) {
      mean[k] = active ? number_at(args.mean, c, C(0)) : C(0);
      sums[k] = {};
      if (active) relu.prepare(k, c, args);
    });
  }
  template <int U>
  __device__ void visit(const int64_t (&at)[U]) {
    const LoadedPacks<T, N, U> p(x, gy, at);
    unsigned passed[U];
    relu.load(at, passed);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int c = k % kChannels;
        const C centred = widen(p.x[u].v[k]) - mean[c];
        const C g = relu.passes(passed[u], k, centred) ? widen(p.gy[u].v[k]) : C(0);
        sums[c].v[0] += g;
        sums[c].v[1] = fused(g, centred, sums[c].v[1]);
      }
  }
  __device__ void finish(const NormalizationGradArgs& args, int64_t channel, int part, int parts) {
    store_rows<C>(args, channel, part, parts, sums);
  }
  __device__ void finish(const NormalizationGradArgs& args, int64_t first, int part, int parts,
                         int across, bool active) {
    store_columns<C>(args, first, part, parts, across, active, sums);
  }
};

// gx = of_g * g + of_x * (x - mean) + constant.
template <class T, int N, int kChannels, Relu kRelu>
struct GradientBody {
  using C = Compute<T>;
  static constexpr Order kOrder = Order::kBackward;
  // Of 16-bit packs fewer than packs_ahead() says: the constants leave no registers for more.
  static constexpr int kAhead = N == 1 ? packs_ahead(sizeof(T), 2) : 2;
  const void *x, *gy;
  ReluGate<T, N, kChannels, kRelu> relu;
  void *gx, *g_residual;
  C mean[kChannels], of_g[kChannels], of_x[kChannels], constant[kChannels];

  __device__ GradientBody(const NormalizationGradArgs& args, int64_t first, int64_t inner,
                          bool active)
      : x(args.x), gy(args.gy), relu(args), gx(args.gx), g_residual(args.g_residual) {
    if (!active) return;
    const C m = args.count ? static_cast<const C*>(args.count)[0] * C(args.sums_weight)
                           : C(args.outer * args.inner);
    each_channel<kChannels>(first, inner, [&](int k, int64_t c) {
      const C inverse = number_at(args.inverse_deviation, c, C(0));
      mean[k] = number_at(args.mean, c, C(0));
      relu.prepare(k, c, args);
      of_g[k] = number_at(args.gamma, c, C(1)) * inverse;
      of_x[k] = constant[k] = C(0);
      if (args.fixed) return;
      constant[k] = -of_g[k] * (number_at(args.sums, c, C(0)) / m);
      // In this order no intermediate result overflows unless the final one does.
      of_x[k] =
          -of_g[k] * (inverse * (number_at(args.sums, args.channels + c, C(0)) / m)) * inverse;
      constant[k] = fused(-of_x[k], number_at(args.mean_rest, c, C(0)), constant[k]);
    });
  }
  template <int U>
  __device__ void visit(const int64_t (&at)[U]) {
    const LoadedPacks<T, N, U> p(x, gy, at);
    unsigned passed[U];
    relu.load(at, passed);
#pragma unroll
    for (int u = 0; u < U; ++u) {
      Pack<T, N> result, kept;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int c = k % kChannels;
        const C centred = widen(p.x[u].v[k]) - mean[c];
        const C g = relu.passes(passed[u], k, centred) ? widen(p.gy[u].v[k]) : C(0);
        const C rest = fused(of_x[c], centred, constant[c]);
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

// The bodies for one way through the relu.
template <Relu kRelu>
struct Bodies {
  template <class T, int N, int kChannels>
  using Sums = SumsBody<T, N, kChannels, kRelu>;
  template <class T, int N, int kChannels>
  using Gradient = GradientBody<T, N, kChannels, kRelu>;
};

template <Relu kRelu>
void launch_sums(Float type, const NormalizationGradArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type,
                      run_sums<T, Bodies<kRelu>::template Sums, Sums<Compute<T>>>(args, launch);)
}

template <Relu kRelu>
void launch_gradient(Float type, const NormalizationGradArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const Walk walk = walk_of<T>(args).divide(kGradientPacks, launch);
    run_walk<T, Bodies<kRelu>::template Gradient>(walk, args, launch);
  })
}

// Calls f with the way through the relu as a constant.
template <class F>
void with_constant(Relu relu, F f) {
  switch (relu) {
    case Relu::kNone: return f(std::integral_constant<Relu, Relu::kNone>());
    case Relu::kMask: return f(std::integral_constant<Relu, Relu::kMask>());
    case Relu::kFromX: return f(std::integral_constant<Relu, Relu::kFromX>());
  }
}

}  // namespace

void launch_normalization_sums(Float type, const NormalizationGradArgs& args,
                               const Launch& launch) {
  with_constant(args.relu,
                [&](auto relu) { launch_sums<decltype(relu)::value>(type, args, launch); });
}

void launch_normalization_gradient(Float type, const NormalizationGradArgs& args,
                                   const Launch& launch) {
  with_constant(args.relu,
                [&](auto relu) { launch_gradient<decltype(relu)::value>(type, args, launch); });
}

}  // namespace catena::gpu
