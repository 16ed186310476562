// A block writes its words to all ranks, and reads theirs once they carry the call's mark. No block
// can be two calls ahead of that of another rank, as it needs its words, so two sets of places do.
#include "exchange_kernel.h"

namespace catena::comm::nccl {

namespace {

__device__ bool stopped(const ExchangeState* state) {
  return *reinterpret_cast<const volatile uint32_t*>(&state->stop) != 0;
}

// Graphs of which two run at once have to come one after the other.
__device__ void lock(ExchangeState* state) {
  while (atomicCAS(&state->lock, 0u, 1u) != 0u && !stopped(state)) {
  }
  __threadfence();
}

__device__ uint32_t wait_for(const MarkedWord* place, uint32_t mark, const ExchangeState* state) {
  const volatile MarkedWord* word = place;
  for (int tries = 0;; ++tries) {
    const MarkedWord seen = *word;
    if (static_cast<uint32_t>(seen >> 32) == mark) return static_cast<uint32_t>(seen);
    if ((tries & 255) == 255 && stopped(state)) return 0;
  }
}

template <bool kSums>
__global__ void __launch_bounds__(kWordsOfBlock)
    exchange_kernel(Exchange parts, const uint32_t* in, uint32_t* out, size_t words,
                    uint32_t number) {
  __shared__ uint32_t call;
  ExchangeState* const state = parts.states + blockIdx.x;
  if (threadIdx.x == 0) {
    lock(state);
    call = *reinterpret_cast<volatile uint32_t*>(&state->calls) + 1;
  }
  __syncthreads();
  const uint32_t mark = call ^ number;
  const size_t set = (call & 1) * static_cast<size_t>(parts.ranks);
  const size_t i = blockIdx.x * kWordsOfBlock + threadIdx.x;
  if (i < words) {
    const MarkedWord own = static_cast<MarkedWord>(mark) << 32 | in[i];
    for (int r = 0; r < parts.ranks; ++r)
      *static_cast<volatile MarkedWord*>(parts.words[r] + (set + parts.rank) * kWordsOfCall + i) =
          own;
    const MarkedWord* received = parts.words[parts.rank] + set * kWordsOfCall + i;
    float sum = 0;
    for (int r = 0; r < parts.ranks; ++r) {
      const uint32_t word = wait_for(received + r * kWordsOfCall, mark, state);
      if (kSums)
        sum = r == 0 ? __uint_as_float(word) : sum + __uint_as_float(word);
      else
        out[r * words + i] = word;
    }
    if (kSums) out[i] = __float_as_uint(sum);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    state->calls = call;
    __threadfence();
    atomicExch(&state->lock, 0u);
  }
}

}  // namespace

cudaError_t launch_exchange(const Exchange& parts, bool sums, const void* in, void* out,
                            size_t words, uint32_t number, cudaStream_t stream) {
  const auto* from = static_cast<const uint32_t*>(in);
  auto* to = static_cast<uint32_t*>(out);
  const unsigned blocks = static_cast<unsigned>((words + kWordsOfBlock - 1) / kWordsOfBlock);
  if (sums)
    exchange_kernel<true><<<blocks, kWordsOfBlock, 0, stream>>>(parts, from, to, words, number);
  else
    exchange_kernel<false><<<blocks, kWordsOfBlock, 0, stream>>>(parts, from, to, words, number);
  return cudaGetLastError();
}

}  // namespace catena::comm::nccl
