// How the backward pass finds where a relu that was fused into batch normalization let y through.
#pragma once

#include "backends/cuda/normalization/walk.cuh"

namespace catena::gpu {
namespace {

// Where y is positive, for packs of N elements: one bit an element.
template <int N>
struct ReluMask {
  uint8_t* bytes;
  int elements, shift;  // of a byte, a power of two; its logarithm

  __device__ explicit ReluMask(const NormalizationMask& mask)
      : bytes(mask.bytes),
        elements(mask.elements),
        shift((mask.elements > 1) + (mask.elements > 2) + (mask.elements > 4)) {}

  // In the walk that normalization_walk() made the mask for, a byte holds a pack.
  template <class T>
  __device__ void store(int64_t at, const Pack<T, N>& y) const {
    unsigned positive = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) positive |= unsigned(widen(y.v[k]) > Compute<T>(0)) << k;
    bytes[at] = uint8_t(positive);
  }
  // Of the pack at `at`. The backward pass may take other packs than made the mask, where arrays of
  // one of the passes are not aligned.
  __device__ unsigned load(int64_t at) const {
    const int64_t first = at * N;
    if (elements >= N) return unsigned(bytes[first >> shift]) >> bit(first);
    unsigned positive = 0;
#pragma unroll
    for (int k = 0; k < N; ++k)
      positive |= (unsigned(bytes[(first + k) >> shift]) >> bit(first + k) & 1) << k;
    return positive;
  }

 private:
  __device__ int bit(int64_t element) const { return int(element) & (elements - 1); }
};

// The gradient's way through the relu of kChannels channels.
template <class T, int N, int kChannels, Relu kRelu>
struct ReluGate {
  using C = Compute<T>;
  ReluMask<N> mask;                      // kMask
  C scale[kChannels], shift[kChannels];  // kFromX

  __device__ explicit ReluGate(const NormalizationGradArgs& args) : mask(args.mask) {}
  __device__ void prepare(int k, int64_t channel, const NormalizationGradArgs& args) {
    if constexpr (kRelu == Relu::kFromX) {
      scale[k] =
          number_at(args.gamma, channel, C(1)) * number_at(args.inverse_deviation, channel, C(0));
      shift[k] = number_at(args.beta, channel, C(0));
    }
  }
  template <int U>
  __device__ void load(const int64_t (&at)[U], unsigned (&passed)[U]) const {
#pragma unroll
    for (int u = 0; u < U; ++u) passed[u] = kRelu == Relu::kMask ? mask.load(at[u]) : 0;
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
