// The kernel of two_shot.h, as C++ sees it.
#pragma once

#include <cuda_runtime_api.h>

#include "peer_block.h"
#include "sum_type.h"

namespace catena::comm::nccl {

constexpr unsigned kTwoShotThreads = 512;

// What a block of another rank says to the block of this rank with its number, in the memory of
// this rank.
struct BlockSignal {
  unsigned long long target;  // where it wants the sums, as this rank sees it; 0: at `sums_at`
  uint32_t operands;          // the mark of the call whose operands are here
  uint32_t sums;              // the mark of the call whose sums are there
};

static_assert(sizeof(BlockState) == kPackBytes && sizeof(BlockSignal) == kPackBytes);

// The memory of all ranks. Each block has a part of its own of everything: states [block], signals
// [block][rank], and packs of operands that have come from a rank, and of sums of which a rank has
// computed the slice, [block][rank][pack].
struct TwoShot {
  int rank, ranks;
  size_t block_packs;  // of a block in each slice, at most
  size_t signals_at, operands_at, sums_at;
  char* memory[kMostRanks];
};

// What a call does with the slices of the array. A reduce-scatter ends with the first step, an
// all-gather begins with the second one.
enum class TwoShotKind : uint8_t { kAllReduce, kReduceScatter, kAllGather };

// One call. The array is cut into a slice for each rank, and each slice into a part for each block.
// Where an array has the slice of this rank alone, `in` or `out` is where the whole would begin.
struct TwoShotCall {
  const void* in;
  void* out;
  TwoShotKind kind;
  SumType type;
  unsigned blocks;
  size_t packs;      // of 16 bytes, the last perhaps not whole
  unsigned in_last;  // elements in the last pack
  size_t slice;      // packs in a slice
  size_t stride;     // packs from slice to slice; more where this is a piece of an array
  size_t part;       // packs of a slice in a part
  float weight;      // of this rank's elements; not with types of 16 bits
  float divisor;     // of the sum
  uint32_t number;   // see call_number
  bool aligned_in;   // to 16 bytes
  bool aligned_out;  // the same
  bool direct;       // others write sums into targets[their rank], which is `out` as they see it
  char* targets[kMostRanks];
};
cudaError_t launch_two_shot(const TwoShot& parts, const TwoShotCall& call, cudaStream_t stream);

}  // namespace catena::comm::nccl
