// The kernel of peer_exchange.h, as C++ sees it.
#pragma once

#include <cuda_runtime_api.h>

#include "peer_block.h"

namespace catena::comm::nccl {

constexpr size_t kMostBytes = 256 << 10;  // of a rank

// 32 bits of data, and the mark of the call that they belong to. Written at once, so that who reads
// the mark has the data.
using MarkedWord = unsigned long long;
constexpr size_t kWordsOfCall = kMostBytes / 4;
constexpr size_t kWordsOfBlock = 512;
constexpr size_t kMostBlocks = kWordsOfCall / kWordsOfBlock;

// The memory of a rank: states, and words that the others write, [parity of the
// call][rank][word].
struct Exchange {
  int rank, ranks;
  BlockState* states;             // of this rank
  MarkedWord* words[kMostRanks];  // of all ranks
};
constexpr size_t kStateBytes = kMostBlocks * sizeof(BlockState);
constexpr size_t exchange_bytes(int ranks) {
  return kStateBytes + 2 * size_t(ranks) * kWordsOfCall * sizeof(MarkedWord);
}

enum class ExchangeKind : uint8_t {
  kGather,      // all ranks' words, one rank after the other
  kSumFloat32,  // of words
  kSumFloat64   // of pairs of words
};
struct ExchangeCall {
  const void* in;
  void* out;
  size_t words;     // of 32 bits, of each rank
  uint32_t number;  // see call_number
  ExchangeKind kind;
  float weight;   // of this rank's words in a sum of float32
  float divisor;  // of a sum
};
cudaError_t launch_exchange(const Exchange& parts, const ExchangeCall& call, cudaStream_t stream);

}  // namespace catena::comm::nccl
