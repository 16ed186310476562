// A matrix product as plain numbers, and the kernels of our own that compute one.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// One matrix or a batch of them; steps in elements.
struct Matrix {
  void* data;
  int64_t row_step, column_step, batch_step;
};

// c = activation(a @ b + bias) + (accumulate ? c : 0); a is m x k, b is k x n, bias has n elements.
struct Product {
  int64_t m, n, k, batch;
  Matrix a, b, c;
  const void* bias;
  bool relu, accumulate;
};

enum class Number : uint8_t { kF16, kBf16, kF32, kF64, kI8, kI16, kI32, kI64, kBool };

// Any type (unsigned integers as signed ones: the bits are the same), any steps, k may be 0.
void launch_simple_matmul(Number type, const Product& product, const Launch& launch);
// float32 and float64 where a few small tiles are all the work: runs at the cost of a launch.
bool fits_tiny_matmul(const Product& product, const Launch& launch);
void launch_tiny_matmul(bool is_double, const Product& product, const Launch& launch);
// float32 with at most 16 rows or columns in the result and both operands adjacent along k.
bool fits_thin_matmul(const Product& product, const Launch& launch);
void launch_thin_matmul(const Product& product, const Launch& launch);
// c = activation(c + bias) for types whose library epilogue is missing.
void launch_bias_activation(Float type, const Product& product, const Launch& launch);

}  // namespace catena::gpu
