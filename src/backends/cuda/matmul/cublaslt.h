// Matrix products by cuBLASLt, planned once for each problem.
#pragma once

#include "backends/cuda/matmul/matmul.h"
#include "catena/core/config.h"
#include "catena/core/dtype.h"

namespace catena::gpu {

// How cuBLASLt sees one operand: rows by columns in memory, adjacent along rows' elements
// (column-major), possibly to be transposed.
struct LibraryMatrix {
  void* data;
  int64_t leading;     // elements from one column to the next
  int64_t batch_step;  // elements
  bool transposed;
};

// c (rows x columns, column-major) = activation(op(a) op(b) + bias) + (accumulate ? c : 0); the
// bias runs along the rows of c.
struct LibraryProduct {
  int64_t rows, columns, depth, batch;
  LibraryMatrix a, b, c;
  const void* bias;
  bool relu, accumulate;
};

// Enqueues the product; false when cuBLASLt has no algorithm for it (nothing was done then).
//
// The first result of the library's heuristic is used; with CATENA_MATMUL_TUNE=1 and without
// config().deterministic the fastest of its first results, timed when a problem is met for the
// first time and remembered in the cache folder, so that later runs and other ranks take the same.
// A choice holds for the life of the process, so that eager and captured execution agree.
bool library_matmul(Dtype dtype, Precision precision, const LibraryProduct& product, int device,
                    cudaStream_t stream);

}  // namespace catena::gpu
