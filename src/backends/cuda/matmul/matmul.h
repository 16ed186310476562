// A matrix product as plain numbers, and catena's own kernels for it.
#pragma once

#include "backends/cuda/runtime/element.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// One matrix or a batch of them; steps in elements.
struct Matrix {
  void* data;
  int64_t row_step, column_step, batch_step;
};

// c = activation(a @ b + bias) + (accumulate ? c : 0); a is m x k, b is k x n, bias has n elements.
// wide: c is float32, a and b are 16-bit floats, without bias and activation.
struct Product {
  int64_t m, n, k, batch;
  Matrix a, b, c;
  const void* bias;
  bool relu, accumulate, wide;
};

// Any type, that of a and b (unsigned integers as signed ones, which gives the same bits) and any
// steps; k may be 0.
void launch_simple_matmul(Element type, const Product& product, const Launch& launch);
// float32 and float64, for products of a few small tiles: takes about as long as a launch. Always
// in full precision.
bool fits_tiny_matmul(const Product& product, const Launch& launch);
void launch_tiny_matmul(bool is_double, const Product& product, const Launch& launch);
// float32, for results of at most 16 rows or columns, with both operands contiguous along k.
bool fits_thin_matmul(const Product& product, const Launch& launch);
void launch_thin_matmul(const Product& product, const Launch& launch);
// c = activation(c + bias), for types for which the library has no epilogue.
void launch_bias_activation(Float type, const Product& product, const Launch& launch);

}  // namespace catena::gpu
