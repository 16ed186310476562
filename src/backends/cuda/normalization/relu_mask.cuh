// Mask of a relu that was fused into batch normalization: where it let y through, for backward.
#pragma once

#include "backends/cuda/normalization/walk.cuh"

namespace catena::gpu {
namespace {

// A byte of a mask: bit i says whether y[i] is positive.
template <class T>
__device__ uint8_t positive_bits(const T* y, int elements) {
  unsigned positive = 0;
#pragma unroll
  for (int k = 0; k < elements; ++k) positive |= unsigned(widen(y[k]) > Compute<T>(0)) << k;
  return uint8_t(positive);
}

// The gradient's way through the relu of kChannels channels.
template <class T, int N, int kChannels, Relu kRelu>
struct ReluGate {
  using C = Compute<T>;
  const uint8_t* mask;                   // kMask: a byte for each pack
  C scale[kChannels], shift[kChannels];  // kFromX

  __device__ explicit ReluGate(const NormalizationGradArgs& args) : mask(args.mask) {}
  __device__ void prepare(int k, int64_t channel, const NormalizationGradArgs& args) {
    if constexpr (kRelu == Relu::kFromX) {
      scale[k] =
          number_at(args.gamma, channel, C(1)) * number_at(args.inverse_deviation, channel, C(0));
      shift[k] = shift_at(args.beta, args.mean_rest, channel, scale[k]);
    }
  }
  template <int U>
  __device__ void load(const int64_t (&at)[U], unsigned (&passed)[U]) const {
#pragma unroll
    for (int u = 0; u < U; ++u) passed[u] = kRelu == Relu::kMask ? mask[at[u]] : 0;
  }
  // Of element k of a pack, with x - mean. kFromX rounds as the forward pass did.
  __device__ bool passes(unsigned passed, int k, C centred) const {
    if constexpr (kRelu == Relu::kMask) return passed >> k & 1;
    if constexpr (kRelu == Relu::kFromX) {
      const C y = fused(centred, scale[k % kChannels], shift[k % kChannels]);
      return widen(Narrow<T>::from(y)) > C(0);
    }
    return true;
  }
};

}  // namespace
}  // namespace catena::gpu
