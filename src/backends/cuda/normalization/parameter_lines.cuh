// The end of the gradients of gamma and beta where kernels leave their parts of them in lines, each
// with a number for every channel.
#pragma once

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

#ifndef CATENA_SUM_THREADS
#define CATENA_SUM_THREADS 256
#endif
constexpr int kSumColumns = 8, kSumThreads = CATENA_SUM_THREADS;

// Sets the numbers of a channel in one of `lines` lines: the sums of gy and of gy * xhat.
template <class C>
__device__ void store_line(void* partials, int64_t lines, int64_t channels, int64_t line,
                           int64_t channel, C sum, C sum_xhat) {
  C* const to = static_cast<C*>(partials) + line * channels + channel;
  to[0] = sum_xhat;
  to[lines * channels] = sum;
}

// Sums over lines of numbers, one for each channel: grid (columns, gamma or beta).
template <class T>
__global__ void __launch_bounds__(kSumThreads)
    sum_lines_kernel(RowParameterSums parameters, int64_t channels, int64_t lines) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ C shared[kSumThreads / 32][kSumColumns];
  const bool beta = blockIdx.y == 1;
  const RowParameterGradient& gradient = beta ? parameters.beta : parameters.gamma;
  if (gradient.data == nullptr) return;
  const int column = int(threadIdx.x) % kSumColumns, line = int(threadIdx.x) / kSumColumns;
  const int64_t channel = int64_t(blockIdx.x) * kSumColumns + column;
  const C* const from =
      static_cast<const C*>(parameters.partials) + (beta ? lines * channels : 0) + channel;
  C sum = C(0);
#pragma unroll 4
  for (int64_t i = channel < channels ? line : lines; i < lines; i += kSumThreads / kSumColumns)
    sum += from[i * channels];
#pragma unroll
  for (int offset = 16; offset >= kSumColumns; offset /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, offset);
  if (threadIdx.x % 32 < kSumColumns) shared[threadIdx.x / 32][column] = sum;
  __syncthreads();
  if (line > 0 || channel >= channels) return;
  for (int w = 1; w < kSumThreads / 32; ++w) sum += shared[w][column];
  set_gradient<T>(gradient, channel, sum);
}

// `parameters` has partial sums in lines of numbers, one for each channel: first those for gamma,
// then as many for beta. They are added in a fixed order, so that equal launches give equal bits.
template <class T>
void sum_partials(const RowParameterSums& parameters, int64_t channels, int64_t lines,
                  const Launch& launch) {
  if (parameters.gamma.data == nullptr && parameters.beta.data == nullptr) return;
  const auto columns = unsigned((channels + kSumColumns - 1) / kSumColumns);
  launch_kernel<sum_lines_kernel<T>>(dim3(columns, 2), kSumThreads, launch, parameters, channels,
                                     lines);
}

// The same for numbers of four channels at a time, as few lines of many channels need: grid (packs
// of the columns, gamma or beta). `across`: packs side by side in a block.
template <class T>
__global__ void __launch_bounds__(kSumThreads)
    sum_wide_lines_kernel(RowParameterSums parameters, int64_t packs, int lines, int across) {
  wait_for_previous_kernel();
  using Four = Pack<float, 4>;
  __shared__ Four shared[kSumThreads];
  const bool beta = blockIdx.y == 1;
  const RowParameterGradient gradient = beta ? parameters.beta : parameters.gamma;
  if (gradient.data == nullptr) return;
  const int me = int(threadIdx.x), of_column = kSumThreads / across, line = me / across;
  const int64_t pack = int64_t(blockIdx.x) * across + me % across;
  const Four* const from =
      static_cast<const Four*>(parameters.partials) + (beta ? lines * packs : 0) + pack;
  Four sums{};
#pragma unroll 8
  for (int i = pack < packs ? line : lines; i < lines; i += of_column) {
    const Four more = from[i * packs];
#pragma unroll
    for (int k = 0; k < 4; ++k) sums.v[k] += more.v[k];
  }
  shared[me] = sums;
  for (int half = of_column / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (line >= half) continue;
    const Four more = shared[me + half * across];
#pragma unroll
    for (int k = 0; k < 4; ++k) sums.v[k] += more.v[k];
    shared[me] = sums;
  }
  if (line > 0 || pack >= packs) return;
#pragma unroll
  for (int k = 0; k < 4; ++k) set_gradient<T>(gradient, pack * 4 + k, sums.v[k]);
}

// As sum_partials(), for a number of channels that is a multiple of four.
template <class T>
void sum_wide_lines(const RowParameterSums& parameters, int64_t channels, int lines,
                    const Launch& launch) {
  static_assert(sizeof(Compute<T>) == sizeof(float));
  constexpr int kLinesOfThread = 8, kMostOfColumn = 32;
  const int of_column =
      power_of_two_from((lines + kLinesOfThread - 1) / kLinesOfThread, kMostOfColumn);
  const int across = kSumThreads / of_column;
  const int64_t packs = channels / 4;
  const auto columns = unsigned((packs + across - 1) / across);
  launch_kernel<sum_wide_lines_kernel<T>>(dim3(columns, 2), kSumThreads, launch, parameters, packs,
                                          lines, across);
}

}  // namespace
}  // namespace catena::gpu
