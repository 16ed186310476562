// Maxima and exponentials of scores, for sums over classes whose largest term is exp(0): what is
// wrong with the digits of a small term does not count.
#pragma once

namespace catena::gpu {
namespace {

// The other one where one is NaN.
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline double larger(double a, double b) { return fmax(a, b); }

// The hardware's power of two, whose error is 2^-22.
__device__ inline float rough_exp2(float v) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
  return y;
#else
  return exp2f(v);
#endif
}
// In float, with what rounding the product adds.
__device__ inline float rough_exp(float v) { return rough_exp2(v * 1.4426950408889634f); }
__device__ inline double rough_exp(double v) { return exp(v); }

}  // namespace
}  // namespace catena::gpu
