// The kernels of random.cu, compiled for the host: see random_kernels_test.cpp.
#include <cmath>

inline void sincospif(float x, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(3.14159265358979323846 * x));
  *cosine = static_cast<float>(std::cos(3.14159265358979323846 * x));
}

#include "backends/cuda/random/random.cu"
