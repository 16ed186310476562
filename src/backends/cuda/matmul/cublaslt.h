// Matrix products by cuBLASLt, planned once for each problem.
#pragma once

#include "backends/cuda/matmul/matmul.h"
#include "catena/core/config.h"
#include "catena/core/dtype.h"

namespace catena::gpu {

// One operand as cuBLASLt sees it: a column-major matrix of rows by columns, to be transposed on
// request.
struct LibraryMatrix {
  void* data;
  int64_t leading;     // elements from one column to the next
  int64_t batch_step;  // elements
  bool transposed;
};

// What is made of the numbers of a product and its bias. GELU is the form with tanh.
enum class LibraryActivation : uint8_t { kNone, kRelu, kGeluTanh };

// c (rows x columns, column-major) = activation(op(a) op(b) + bias) + (accumulate ? c : 0). The
// bias has one element for each row of c, side by side. wide: c is float32, a and b are 16-bit
// floats. before, with kGeluTanh and of the dtype of c, gets what goes into the activation, unless
// it is null: column-major, its address and columns at multiples of 16 bytes.
struct LibraryProduct {
  int64_t rows, columns, depth, batch;
  LibraryMatrix a, b, c;
  const void* bias;
  LibraryActivation activation;
  bool accumulate, wide;
  void* before;
  int64_t before_leading;
};

// Enqueues the product of matrices of this dtype. Returns false, with nothing enqueued, if cuBLASLt
// has no algorithm for it.
//
// The library proposes algorithms, and not always the fastest one first. Of a product of at least
// 2^31 multiplications the fastest of its first proposals is used, unless config().deterministic or
// CATENA_MATMUL_TUNE=0. They are timed when the problem first occurs, which waits for the stream,
// and the choice is kept in the cache folder, so that later runs and other ranks use the same one.
// Problems that first occur in a capture get the first proposal, as do smaller ones but with
// CATENA_MATMUL_TUNE=1. A choice holds for the life of the process, so that eager and captured
// execution agree.
//
// Large products of odd extents or distances are computed from copies, where that is faster
// (padding.h).
bool library_matmul(Dtype dtype, Precision precision, const LibraryProduct& product, int device,
                    cudaStream_t stream);
// The same from the operands as they are.
bool direct_matmul(Dtype dtype, Precision precision, const LibraryProduct& product, int device,
                   cudaStream_t stream);

}  // namespace catena::gpu
