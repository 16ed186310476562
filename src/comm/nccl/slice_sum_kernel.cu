// Adds what copy engines have brought. Products may run at the same time and fill most
// multiprocessors: small blocks find places between theirs, and the free ones take most.
#include "elements.cuh"
#include "slice_sum_kernel.h"

namespace catena::comm::nccl {

namespace {

constexpr unsigned kThreads = 256, kRounds = 4;

// kMost: ranks at most, for which loops are unrolled.
template <class T, int kMost>
__device__ uint4 sum_of_packs(const SliceSum& slice, size_t pack) {
  uint4 packs[kMost];
#pragma unroll
  for (int r = 0; r < kMost; ++r)
    if (r < slice.ranks) packs[r] = __ldcg(static_cast<const uint4*>(slice.operands[r]) + pack);
  Elements<T> total(packs[0]);
#pragma unroll
  for (int r = 1; r < kMost; ++r) {
    if (r >= slice.ranks) continue;
    const Elements<T> more(packs[r]);
#pragma unroll
    for (int k = 0; k < Elements<T>::kCount; ++k) total.of[k] = __fadd_rn(total.of[k], more.of[k]);
  }
  if (slice.divisor != 1) {
#pragma unroll
    for (int k = 0; k < Elements<T>::kCount; ++k)
      total.of[k] = __fdiv_rn(total.of[k], slice.divisor);
  }
  return total.pack();
}

template <class T>
__device__ T sum_of_elements(const SliceSum& slice, size_t i) {
  float total = static_cast<float>(static_cast<const T*>(slice.operands[0])[i]);
  for (int r = 1; r < slice.ranks; ++r)
    total = __fadd_rn(total, static_cast<float>(static_cast<const T*>(slice.operands[r])[i]));
  if (slice.divisor != 1) total = __fdiv_rn(total, slice.divisor);
  return static_cast<T>(total);
}

// The first `packs` packs as such, what follows by elements.
template <class T, int kMost>
__global__ void __launch_bounds__(kThreads)
    slice_sum_kernel(const __grid_constant__ SliceSum slice, size_t packs) {
  const size_t first = size_t(blockIdx.x) * kThreads + threadIdx.x,
               step = size_t(gridDim.x) * kThreads;
#pragma unroll kRounds
  for (size_t i = first; i < packs; i += step)
    static_cast<uint4*>(slice.sum)[i] = sum_of_packs<T, kMost>(slice, i);
  for (size_t i = packs * Elements<T>::kCount + first; i < slice.elements; i += step)
    static_cast<T*>(slice.sum)[i] = sum_of_elements<T>(slice, i);
}

template <class T>
cudaError_t launch(const SliceSum& slice, cudaStream_t stream) {
  bool aligned = is_aligned(slice.sum);
  for (int r = 0; r < slice.ranks; ++r) aligned = aligned && is_aligned(slice.operands[r]);
  const size_t packs = aligned ? slice.elements / Elements<T>::kCount : 0;
  const size_t rounds = size_t(kThreads) * kRounds;
  const unsigned grid = unsigned(((packs ? packs : slice.elements) + rounds - 1) / rounds);
  if (slice.ranks == 2)
    slice_sum_kernel<T, 2><<<grid, kThreads, 0, stream>>>(slice, packs);
  else if (slice.ranks <= 4)
    slice_sum_kernel<T, 4><<<grid, kThreads, 0, stream>>>(slice, packs);
  else
    slice_sum_kernel<T, 8><<<grid, kThreads, 0, stream>>>(slice, packs);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_slice_sum(const SliceSum& slice, cudaStream_t stream) {
  switch (slice.type) {
    case SumType::kFloat16: return launch<__half>(slice, stream);
    case SumType::kBFloat16: return launch<__nv_bfloat16>(slice, stream);
    default: return launch<float>(slice, stream);
  }
}

}  // namespace catena::comm::nccl
