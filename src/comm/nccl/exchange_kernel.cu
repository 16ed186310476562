// A block writes its words to all ranks, and reads theirs once they carry the call's mark. No block
// can be two calls ahead of that of another rank, as it needs its words, so two sets of places do.
#include "exchange_kernel.h"

#include "peer_block.cuh"

namespace catena::comm::nccl {

namespace {

// The words of all other ranks for one place, once they carry the mark: looked for at once, as each
// look takes long. kMost: ranks at most, for which loops are unrolled.
template <int kMost>
__device__ void wait_for_words(const MarkedWord* first, const Exchange& parts, uint32_t mark,
                               uint32_t (&words)[kMost]) {
  const BlockState* const state = parts.states + blockIdx.x;
  uint32_t missing = ((1u << parts.ranks) - 1) & ~(1u << parts.rank);
  for (int tries = 0; missing != 0; ++tries) {
    MarkedWord seen[kMost];
#pragma unroll
    for (int r = 0; r < kMost; ++r)
      if (missing >> r & 1)
        seen[r] = *static_cast<const volatile MarkedWord*>(first + r * kWordsOfCall);
#pragma unroll
    for (int r = 0; r < kMost; ++r) {
      if (!(missing >> r & 1) || static_cast<uint32_t>(seen[r] >> 32) != mark) continue;
      words[r] = static_cast<uint32_t>(seen[r]);
      missing &= ~(1u << r);
    }
    if ((tries & 255) == 255 && stopped(state)) return;
  }
}

// The words of all ranks for one place, added up in the order of the ranks. Weights and the divisor
// of plain sums are 1, which changes no bit.
template <int kMost>
__device__ uint32_t sum_float32(const uint32_t (&words)[kMost], int ranks, float divisor) {
  float sum = __uint_as_float(words[0]);
#pragma unroll
  for (int r = 1; r < kMost; ++r)
    if (r < ranks) sum = __fadd_rn(sum, __uint_as_float(words[r]));
  return __float_as_uint(__fdiv_rn(sum, divisor));
}

// The same where the thread beside this one has the other half of each number. `threads` of the
// warp have words.
template <int kMost>
__device__ uint32_t sum_float64(const uint32_t (&words)[kMost], int ranks, float divisor,
                                unsigned threads) {
  const bool is_high = threadIdx.x & 1;
  double sum = 0;
#pragma unroll
  for (int r = 0; r < kMost; ++r) {
    const auto own = static_cast<int>(words[r]);
    const int other = __shfl_xor_sync(threads, own, 1);
    const double number = is_high ? __hiloint2double(own, other) : __hiloint2double(other, own);
    if (r == 0)
      sum = number;
    else if (r < ranks)
      sum = __dadd_rn(sum, number);
  }
  sum = __ddiv_rn(sum, divisor);
  return static_cast<uint32_t>(is_high ? __double2hiint(sum) : __double2loint(sum));
}

template <ExchangeKind kKind, int kMost>
__global__ void __launch_bounds__(kWordsOfBlock)
    exchange_kernel(const __grid_constant__ Exchange parts,
                    const __grid_constant__ ExchangeCall of) {
  __shared__ uint32_t call;
  BlockState* const state = parts.states + blockIdx.x;
  const size_t i = blockIdx.x * kWordsOfBlock + threadIdx.x;
  uint32_t own = i < of.words ? static_cast<const uint32_t*>(of.in)[i] : 0;  // under way meanwhile
  if (threadIdx.x == 0) call = begin_call(state);
  __syncthreads();
  const uint32_t mark = call ^ of.number;
  const size_t set = (call & 1) * static_cast<size_t>(parts.ranks);
  const unsigned threads = __ballot_sync(~0u, i < of.words);
  if (i < of.words) {
    if (kKind == ExchangeKind::kSumFloat32)
      own = __float_as_uint(__fmul_rn(of.weight, __uint_as_float(own)));
    const MarkedWord marked = static_cast<MarkedWord>(mark) << 32 | own;
#pragma unroll
    for (int r = 0; r < kMost; ++r) {
      if (r >= parts.ranks || r == parts.rank) continue;
      *static_cast<volatile MarkedWord*>(parts.words[r] + (set + parts.rank) * kWordsOfCall + i) =
          marked;
    }
    uint32_t words[kMost];
#pragma unroll
    for (int r = 0; r < kMost; ++r) words[r] = own;
    wait_for_words(parts.words[parts.rank] + set * kWordsOfCall + i, parts, mark, words);
    auto* const out = static_cast<uint32_t*>(of.out);
    if (kKind == ExchangeKind::kGather) {
#pragma unroll
      for (int r = 0; r < kMost; ++r)
        if (r < parts.ranks) out[r * of.words + i] = words[r];
    } else {
      out[i] = kKind == ExchangeKind::kSumFloat32
                   ? sum_float32(words, parts.ranks, of.divisor)
                   : sum_float64(words, parts.ranks, of.divisor, threads);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) end_call(state, call);
}

template <ExchangeKind kKind>
void launch_for_ranks(const Exchange& parts, const ExchangeCall& call, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((call.words + kWordsOfBlock - 1) / kWordsOfBlock);
  if (parts.ranks == 2)
    exchange_kernel<kKind, 2><<<blocks, kWordsOfBlock, 0, stream>>>(parts, call);
  else if (parts.ranks <= 4)
    exchange_kernel<kKind, 4><<<blocks, kWordsOfBlock, 0, stream>>>(parts, call);
  else
    exchange_kernel<kKind, 8><<<blocks, kWordsOfBlock, 0, stream>>>(parts, call);
}

}  // namespace

cudaError_t launch_exchange(const Exchange& parts, const ExchangeCall& call, cudaStream_t stream) {
  switch (call.kind) {
    case ExchangeKind::kGather: launch_for_ranks<ExchangeKind::kGather>(parts, call, stream); break;
    case ExchangeKind::kSumFloat32:
      launch_for_ranks<ExchangeKind::kSumFloat32>(parts, call, stream);
      break;
    case ExchangeKind::kSumFloat64:
      launch_for_ranks<ExchangeKind::kSumFloat64>(parts, call, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace catena::comm::nccl
