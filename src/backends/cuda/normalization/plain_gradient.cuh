// What the gradients of plain rows share: a thread's part of a row, and the end of the gradients of
// gamma and beta.
#pragma once

#include "backends/cuda/normalization/plain_rows.cuh"

namespace catena::gpu {
namespace {

// A thread's packs of x and gy of a row, and the row's statistics.
template <class T, int kPacks>
struct GradientRow {
  using C = Compute<T>;
  Words x[kPacks], gy[kPacks];
  RowStatistics<C> s;

  // Those of the row that is so many steps ahead.
  __device__ void load(const RowNormalizationArgs& args, const PlainWalk& walk, int ahead) {
    walk.load(args.x, ahead, x);
    walk.load(args.gy, ahead, gy);
    s = load_statistics<C>(args, walk, ahead);
  }
  // Writes the gradient of x; gamma(e) is that of the thread's element e.
  template <class Gamma>
  __device__ void store(const PlainWalk& walk, const RowGradient<C>& gradient, void* gx,
                        Gamma gamma) const {
    constexpr int N = kPack<T>;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const auto px = elements<T>(x[i]), pgy = elements<T>(gy[i]);
      Pack<T, N> result;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const C h = gamma(i * N + k) * widen(pgy.v[k]);
        const C rest = fused(gradient.of_x, widen(px.v[k]) - s.mean, gradient.constant);
        result.v[k] = Narrow<T>::from(fused(s.inverse, h, rest));
      }
      walk.store(gx, i, result);
    }
  }
};

constexpr int kSumColumns = 8, kSumThreads = kPlainThreads < 256 ? kPlainThreads : 256;

// Sums over lines of numbers, one for each channel: grid (columns, gamma or beta).
__global__ void __launch_bounds__(kSumThreads)
    sum_lines_kernel(RowParameterSums parameters, int64_t channels, int lines) {
  wait_for_previous_kernel();
  __shared__ float shared[kSumThreads / 32][kSumColumns];
  const bool beta = blockIdx.y == 1;
  void* const to = beta ? parameters.g_beta : parameters.g_gamma;
  if (to == nullptr) return;
  const int column = int(threadIdx.x) % kSumColumns, line = int(threadIdx.x) / kSumColumns;
  const int64_t channel = int64_t(blockIdx.x) * kSumColumns + column;
  const float* const from =
      static_cast<const float*>(parameters.partials) + (beta ? lines * channels : 0) + channel;
  float sum = 0;
#pragma unroll 4
  for (int i = channel < channels ? line : lines; i < lines; i += kSumThreads / kSumColumns)
    sum += from[i * channels];
#pragma unroll
  for (int offset = 16; offset >= kSumColumns; offset /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, offset);
  if (threadIdx.x % 32 < kSumColumns) shared[threadIdx.x / 32][column] = sum;
  __syncthreads();
  if (line > 0 || channel >= channels) return;
  for (int w = 1; w < kSumThreads / 32; ++w) sum += shared[w][column];
  float& target = static_cast<float*>(to)[channel];
  const bool accumulate = beta ? parameters.accumulate_beta : parameters.accumulate_gamma;
  target = accumulate ? target + sum : sum;
}

// `parameters` has partial sums in lines of numbers, one for each channel: first those for gamma,
// then as many for beta. They are added in a fixed order, so that equal launches give equal bits.
inline void sum_partials(const RowParameterSums& parameters, int64_t channels, int lines,
                         const Launch& launch) {
  if (parameters.g_gamma == nullptr && parameters.g_beta == nullptr) return;
  const auto columns = unsigned((channels + kSumColumns - 1) / kSumColumns);
  launch_kernel<sum_lines_kernel>(dim3(columns, 2), kSumThreads, launch, parameters, channels,
                                  lines);
}

}  // namespace
}  // namespace catena::gpu
