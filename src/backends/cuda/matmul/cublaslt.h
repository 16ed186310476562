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

// c (rows x columns, column-major) = activation(op(a) op(b) + bias) + (accumulate ? c : 0). The
// bias has one element for each row of c. wide: c is float32, a and b are 16-bit floats.
struct LibraryProduct {
  int64_t rows, columns, depth, batch;
  LibraryMatrix a, b, c;
  const void* bias;
  bool relu, accumulate, wide;
};

// Enqueues the product of matrices of this dtype. Returns false, with nothing enqueued, if cuBLASLt
// has no algorithm for it.
//
// The first result of the library's heuristic is used. With CATENA_MATMUL_TUNE=1, and without
// config().deterministic, the fastest of its first results is used. It is timed when a problem
// first occurs and kept in the cache folder, so that later runs and other ranks use the same one. A
// choice holds for the life of the process, so that eager and captured execution agree.
bool library_matmul(Dtype dtype, Precision precision, const LibraryProduct& product, int device,
                    cudaStream_t stream);

}  // namespace catena::gpu
