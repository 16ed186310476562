// Products of strided float and double matrices on the CPU.
#pragma once

#include <cstdint>

namespace catena::host {

// c (m, n) = a (m, k) @ b (k, n), added to c if `accumulate`. Each matrix has unit stride along one
// axis; the strides are elements. m, n, k > 0.
template <class T>
struct Gemm {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  int64_t c_row, c_column;
  bool accumulate;
};
// The bits of the result do not depend on the number of threads.
void gemm(const Gemm<float>& g);
void gemm(const Gemm<double>& g);

// How many parts a product is cut into, one for each thread: rows times columns.
struct Parts {
  int rows, columns;
  int count() const { return rows * columns; }
};
// The partition for at most `threads` threads: one part if the product is too small for more.
// Columns are cut at multiples of `unit`.
Parts parts_of_product(int64_t m, int64_t n, int64_t k, int64_t unit, int threads);

}  // namespace catena::host
