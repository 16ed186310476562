// The fastest product of float matrices by another library that this machine has, opened at run
// time: oneDNN, else OpenBLAS with the kernels that fit the processor.
#pragma once

#include <cstdint>
#include <string>

namespace bench::raw {

// c (m, n) = op(a) @ op(b), all by rows; a is (k, m) and b (n, k) where they are transposed.
void vendor_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                  const float* a, const float* b, float* c);
// "oneDNN 2.6.3"; throws std::runtime_error where there is neither.
std::string vendor_description();

// The libraries bring OpenMP, whose waiting threads would stay on the cores while ours are timed:
// starts the program again with GOMP_SPINCOUNT set, unless the user set it or OMP_WAIT_POLICY.
void limit_spinning(char** argv);

}  // namespace bench::raw
