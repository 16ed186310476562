// Batch normalization, forward: the statistics of a batch, which is read once, and their
// application, which reads and writes it once.
#include "backends/cuda/normalization/normalization.h"

#include "backends/cuda/normalization/moments.cuh"
#include "backends/cuda/normalization/partials.cuh"
#include "backends/cuda/normalization/relu_mask.cuh"

namespace catena::gpu {
namespace {

constexpr int kStatisticsPacks = 16, kApplyPacks = 8;  // the least that a thread takes

template <class T, int N, int kChannels>
struct StatisticsBody {
  using C = Compute<T>;
  static constexpr Order kOrder = Order::kForward;
  static constexpr int kAhead = packs_ahead(sizeof(Pack<T, N>), 1);
  const void* x;
  int packs = 0;  // visited
  ShiftedSums<C> sums[kChannels];

  __device__ StatisticsBody(const NormalizationArgs& args, int64_t, int64_t, bool) : x(args.x) {}
  template <int U>
  __device__ void visit(const int64_t (&at)[U]) {
    Pack<T, N> p[U];
    load_packs(x, at, p);
    if (packs == 0) {
#pragma unroll
      for (int k = 0; k < kChannels; ++k) sums[k].shift = widen(p[0].v[k]);
    }
    packs += U;
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k % kChannels].add(widen(p[u].v[k]));
  }
  __device__ void found(Moments<C> (&values)[kChannels]) const {
#pragma unroll
    for (int k = 0; k < kChannels; ++k) values[k] = sums[k].moments(packs * (N / kChannels));
  }
  __device__ void finish(const NormalizationArgs& args, int64_t channel, int part, int parts) {
    Moments<C> values[kChannels];
    found(values);
    store_rows<C>(args, channel, part, parts, values);
  }
  __device__ void finish(const NormalizationArgs& args, int64_t first, int part, int parts,
                         int across, bool active) {
    Moments<C> values[kChannels];
    found(values);
    store_columns<C>(args, first, part, parts, across, active, values);
  }
};

template <class T, int N, int kChannels>
struct ApplyBody {
  using C = Compute<T>;
  static constexpr Order kOrder = Order::kBackward;
  static constexpr int kAhead = packs_ahead(sizeof(Pack<T, N>), 2);
  const void *x, *residual;
  void* y;
  uint8_t* mask;  // a byte for each pack; null: not wanted
  bool relu;
  C mean[kChannels], scale[kChannels], shift[kChannels];

  __device__ ApplyBody(const NormalizationArgs& args, int64_t first, int64_t inner, bool active)
      : x(args.x), residual(args.residual), y(args.y), mask(args.mask), relu(args.relu) {
    if (!active) return;
    each_channel<kChannels>(first, inner, [&](int k, int64_t c) {
      mean[k] = number_at(args.mean, c, C(0));
      const C inverse = args.inverse_deviation
                            ? number_at(args.inverse_deviation, c, C(0))
                            : C(1) / root(number_at(args.variance, c, C(0)) + C(args.eps));
      scale[k] = number_at(args.gamma, c, C(1)) * inverse;
      shift[k] = shift_at(args.beta, args.mean_rest, c, scale[k]);
    });
  }
  template <int U>
  __device__ void visit(const int64_t (&at)[U]) {
    Pack<T, N> p[U], added[U];
    load_packs(x, at, p);
    if (residual) load_packs(residual, at, added);
#pragma unroll
    for (int u = 0; u < U; ++u) {
      Pack<T, N> result;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int c = k % kChannels;
        C v = fused(widen(p[u].v[k]) - mean[c], scale[c], shift[c]);
        if (residual) v += widen(added[u].v[k]);
        if (relu) v = v <= C(0) ? C(0) : v;
        result.v[k] = Narrow<T>::from(v);
      }
      static_cast<Pack<T, N>*>(y)[at[u]] = result;
      if (mask) mask[at[u]] = positive_bits(result.v, N);
    }
  }
  __device__ void finish(const NormalizationArgs&, int64_t, int, int) {}
  __device__ void finish(const NormalizationArgs&, int64_t, int, int, int, bool) {}
};

constexpr int kMaskThreads = 256;

template <class T>
__global__ void __launch_bounds__(kMaskThreads)
    make_mask(const T* y, int64_t size, uint8_t* mask, int elements) {
  wait_for_previous_kernel();
  const int64_t step = int64_t(gridDim.x) * kMaskThreads;
  for (int64_t i = int64_t(blockIdx.x) * kMaskThreads + threadIdx.x; i * elements < size;
       i += step) {
    mask[i] = positive_bits(y + i * elements, elements);
  }
}

}  // namespace

NormalizationWalk normalization_walk(Float type, int64_t outer, int64_t channels, int64_t inner,
                                     bool aligned, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const Walk walk = walk_of<T>(outer, channels, inner, aligned).divide(kStatisticsPacks, launch);
    const int64_t rows = walk.columns ? channels * inner : channels;
    return {walk.parts, Moments<double>::kNumbers * rows * walk.parts, walk.pack};
  })
  return {};
}

void launch_normalization_statistics(Float type, const NormalizationArgs& args,
                                     const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, run_sums<T, StatisticsBody, Moments<Compute<T>>>(args, launch);)
}

void launch_normalization_apply(Float type, const NormalizationArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const Walk walk = walk_of<T>(args).divide(kApplyPacks, launch);
    run_walk<T, ApplyBody>(walk, args, launch);
  })
}

void launch_normalization_mask(Float type, const void* y, int64_t size, uint8_t* mask, int elements,
                               const Launch& launch) {
  const unsigned blocks = loop_blocks(size / elements, kMaskThreads, launch);
  CATENA_FLOAT_SWITCH(
      type, launch_kernel<make_mask<T>>(blocks, kMaskThreads, launch, static_cast<const T*>(y),
                                        size, mask, elements);)
}

}  // namespace catena::gpu
