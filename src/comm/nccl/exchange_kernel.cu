// A block writes its words to all ranks, and reads theirs once they carry the call's mark. No block
// can be two calls ahead of that of another rank, as it needs its words, so two sets of places do.
#include "exchange_kernel.h"

#include "peer_block.cuh"

namespace catena::comm::nccl {

namespace {

__device__ uint32_t wait_for(const MarkedWord* place, uint32_t mark, const BlockState* state) {
  const volatile MarkedWord* word = place;
  for (int tries = 0;; ++tries) {
    const MarkedWord seen = *word;
    if (static_cast<uint32_t>(seen >> 32) == mark) return static_cast<uint32_t>(seen);
    if ((tries & 255) == 255 && stopped(state)) return 0;
  }
}

// Weights and the divisor of plain sums are 1, which changes no bit.
template <bool kSums>
__global__ void __launch_bounds__(kWordsOfBlock) exchange_kernel(Exchange parts, ExchangeCall of) {
  __shared__ uint32_t call;
  BlockState* const state = parts.states + blockIdx.x;
  const size_t i = blockIdx.x * kWordsOfBlock + threadIdx.x;
  uint32_t data = i < of.words ? static_cast<const uint32_t*>(of.in)[i] : 0;  // under way meanwhile
  if (threadIdx.x == 0) call = begin_call(state);
  __syncthreads();
  const uint32_t mark = call ^ of.number;
  const size_t set = (call & 1) * static_cast<size_t>(parts.ranks);
  if (i < of.words) {
    if (kSums) data = __float_as_uint(__fmul_rn(of.weight, __uint_as_float(data)));
    const MarkedWord own = static_cast<MarkedWord>(mark) << 32 | data;
    for (int r = 0; r < parts.ranks; ++r)
      *static_cast<volatile MarkedWord*>(parts.words[r] + (set + parts.rank) * kWordsOfCall + i) =
          own;
    const MarkedWord* received = parts.words[parts.rank] + set * kWordsOfCall + i;
    auto* const out = static_cast<uint32_t*>(of.out);
    float sum = 0;
    for (int r = 0; r < parts.ranks; ++r) {
      const uint32_t word = wait_for(received + r * kWordsOfCall, mark, state);
      if (kSums)
        sum = r == 0 ? __uint_as_float(word) : __fadd_rn(sum, __uint_as_float(word));
      else
        out[r * of.words + i] = word;
    }
    if (kSums) out[i] = __float_as_uint(__fdiv_rn(sum, of.divisor));
  }
  __syncthreads();
  if (threadIdx.x == 0) end_call(state, call);
}

}  // namespace

cudaError_t launch_exchange(const Exchange& parts, const ExchangeCall& call, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((call.words + kWordsOfBlock - 1) / kWordsOfBlock);
  if (call.sums)
    exchange_kernel<true><<<blocks, kWordsOfBlock, 0, stream>>>(parts, call);
  else
    exchange_kernel<false><<<blocks, kWordsOfBlock, 0, stream>>>(parts, call);
  return cudaGetLastError();
}

}  // namespace catena::comm::nccl
