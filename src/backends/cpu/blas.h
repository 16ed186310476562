// OpenBLAS behind row-major products of strided matrices.
#pragma once

#include <cstdint>

namespace catena::host {

// c (m, n) = a (m, k) @ b (k, n) + beta * c. Each matrix has unit stride along one axis; the
// strides are elements. k > 0.
template <class T>
struct Gemm {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  int64_t c_row, c_column;
  T beta;
};
void gemm(const Gemm<float>& g);
void gemm(const Gemm<double>& g);

// Checks OpenBLAS once (an OpenMP build shares the threads of our loops; another build gets one
// thread and a warning) and gives it this thread's share of the cores.
void prepare_blas();

}  // namespace catena::host
