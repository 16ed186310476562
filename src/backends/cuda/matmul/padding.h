// Products of odd extents: which operands are copied into columns of whole packs. Plain arithmetic.
//
// cuBLASLt has fast kernels where all that lies along memory is whole packs of 16 bytes: the extent
// of each matrix, the distances of its columns and of the matrices of a batch, its address. Its
// other kernels take three to six times as long, in 16 bits and in tf32; those of exact float32 do
// not. A copy into columns that are filled up with zeros takes less.
#pragma once

#include <optional>

#include "backends/cuda/matmul/cublaslt.h"

namespace catena::gpu {

// Numbers in a pack.
struct Packs {
  int64_t operand, result;
};
Packs packs_of(Dtype dtype, bool wide);

// What a product becomes. Operands that are copied have columns that begin at whole packs, and
// zeros for what extents gain; a result that is copied comes from scratch memory.
struct Padding {
  bool a, b, c, bias;   // which are copied
  int64_t rows, depth;  // of the product of the copies
  // Of the result the first `columns` come from copies. The others, less than a pack, are a product
  // of their own: they are there where columns lie along the memory of b alone, whose copy ends
  // before them.
  int64_t columns;
  // Where columns lie along the memory of b and the result is copied: those of b's copy, of each
  // part, are filled up too.
  bool pads_columns;
  // The columns, and the matrices of a batch, that are computed at a time.
  int64_t columns_of_part, batch_of_part;
};

// The most scratch memory of copies at a time, in bytes; config().max_workspace_size may be less.
constexpr int64_t kMostScratch = int64_t{512} << 20;

// Empty where the product is best computed as it is: nothing is odd, it is small, copies take too
// long beside it, or there is too little scratch memory. It depends on nothing else, so that equal
// calls are computed in the same way.
std::optional<Padding> padding_of(const LibraryProduct& product, const Packs& packs,
                                  int64_t most_scratch);

// The multiple of `pack` that is not less.
constexpr int64_t up_to(int64_t pack, int64_t extent) { return (extent + pack - 1) / pack * pack; }

}  // namespace catena::gpu
