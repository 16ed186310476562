// The kernel of peer_exchange.h, as C++ sees it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace catena::comm::nccl {

constexpr int kMostRanks = 8;
constexpr size_t kMostBytes = 64 << 10;  // of a rank

// 32 bits of data, and the mark of the call that they belong to. Written at once, so that who reads
// the mark has the data.
using MarkedWord = unsigned long long;
constexpr size_t kWordsOfCall = kMostBytes / 4;
constexpr size_t kWordsOfBlock = 512;

// Of each block of the kernel, at the head of each rank's memory. Blocks do not wait for each
// other: each has its words, and its count of the calls that needed it.
struct ExchangeState {
  uint32_t calls;  // that have ended
  uint32_t lock;   // 1 while a call runs
  uint32_t stop;   // not 0: nothing is waited for any more
  uint32_t unused;
};
constexpr size_t kMostBlocks = kWordsOfCall / kWordsOfBlock;

// The memory of a rank: states, and words that the others write, [parity of the
// call][rank][word].
struct Exchange {
  int rank, ranks;
  ExchangeState* states;          // of this rank
  MarkedWord* words[kMostRanks];  // of all ranks
};
constexpr size_t kStateBytes = kMostBlocks * sizeof(ExchangeState);
constexpr size_t exchange_bytes(int ranks) {
  return kStateBytes + 2 * size_t(ranks) * kWordsOfCall * sizeof(MarkedWord);
}

// `words` 32-bit words of each rank: their sums as float32, or all of them one rank after the
// other. `number` is equal on all ranks for one call.
cudaError_t launch_exchange(const Exchange& parts, bool sums, const void* in, void* out,
                            size_t words, uint32_t number, cudaStream_t stream);

}  // namespace catena::comm::nccl
