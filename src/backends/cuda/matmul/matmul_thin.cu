// float32 products in which one operand has few lines: the last layer of a classifier (n = 10), or
// a small batch (m = 1 to 16). The square tiles of a library leave most of the GPU idle there.
//
// A block computes one line of the result. Its threads share k, every element of the long operand
// is read once, and the short operand comes from the caches. Sums are added in a fixed order.
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/matmul/matmul.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32, kMostFew = 16;
constexpr int64_t kLeastDepth = 256, kMostDepth = 8192, kMostLinesPerProcessor = 4;

// out(i, j) = sum over k of many[i][k] * few[j][k]; both are contiguous along k.
struct Thin {
  const float *many, *few;
  int64_t many_step, few_step;
  float* out;
  int64_t out_many_step, out_few_step;
  int lines, few_lines, depth;
  const float* bias;
  bool bias_of_few;  // one bias element for each line of `few`, or of `many`
  bool relu, accumulate;
};

__device__ inline float dot(float4 a, float4 b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

__device__ void store(const Thin& t, int line, int j, float sum) {
  if (t.bias) sum += t.bias[t.bias_of_few ? j : line];
  if (t.relu) sum = sum > 0.f || sum != sum ? sum : 0.f;
  float* out = t.out + line * t.out_many_step + j * t.out_few_step;
  *out = t.accumulate ? sum + *out : sum;
}

template <int kFew>
__global__ void __launch_bounds__(kThreads) thin_kernel(Thin t) {
  wait_for_previous_kernel();
  __shared__ float sums[kWarps][kFew];
  const int line = blockIdx.x;
  const float* many = t.many + line * t.many_step;
  float sum[kFew] = {};
  for (int k = threadIdx.x * 4; k < t.depth; k += kThreads * 4) {
    const float4 a = *reinterpret_cast<const float4*>(many + k);
#pragma unroll
    for (int j = 0; j < kFew; ++j) {
      if (j < t.few_lines)
        sum[j] = dot(a, *reinterpret_cast<const float4*>(t.few + j * t.few_step + k), sum[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kFew; ++j) {
    sum[j] = warp_reduce(sum[j], AddOp());
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32][j] = sum[j];
  }
  __syncthreads();
  const int j = threadIdx.x;
  if (j >= t.few_lines) return;
  store(t, line, j, (sums[0][j] + sums[1][j]) + (sums[2][j] + sums[3][j]));
}

static_assert(kWarps == 4, "the sum of the warps' sums is written out above");

bool aligned(const void* data, int64_t step) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && step % 4 == 0;
}

}  // namespace

bool fits_thin_matmul(const Product& p, const Launch& launch) {
  const int64_t few = p.m < p.n ? p.m : p.n, many = p.m < p.n ? p.n : p.m;
  if (few > kMostFew || many > kMostLinesPerProcessor * launch.multiprocessors) return false;
  if (p.batch != 1 || p.k < kLeastDepth || p.k > kMostDepth || p.k % 4 != 0) return false;
  return p.a.column_step == 1 && p.b.row_step == 1 && aligned(p.a.data, p.a.row_step) &&
         aligned(p.b.data, p.b.column_step);
}

void launch_thin_matmul(const Product& p, const Launch& launch) {
  const bool few_rows = p.m < p.n;
  const Matrix b{p.b.data, p.b.column_step, p.b.row_step, 0};  // its columns as lines
  const Matrix &many = few_rows ? b : p.a, &few = few_rows ? p.a : b;
  Thin t;
  t.many = static_cast<const float*>(many.data);
  t.few = static_cast<const float*>(few.data);
  t.many_step = many.row_step;
  t.few_step = few.row_step;
  t.out = static_cast<float*>(p.c.data);
  t.out_many_step = few_rows ? p.c.column_step : p.c.row_step;
  t.out_few_step = few_rows ? p.c.row_step : p.c.column_step;
  t.lines = int(few_rows ? p.n : p.m);
  t.few_lines = int(few_rows ? p.m : p.n);
  t.depth = int(p.k);
  t.bias = static_cast<const float*>(p.bias);
  t.bias_of_few = !few_rows;
  t.relu = p.relu;
  t.accumulate = p.accumulate;
  const unsigned blocks = unsigned(t.lines);
  if (t.few_lines == 1)
    launch_kernel<thin_kernel<1>>(blocks, kThreads, launch, t);
  else if (t.few_lines <= 4)
    launch_kernel<thin_kernel<4>>(blocks, kThreads, launch, t);
  else
    launch_kernel<thin_kernel<kMostFew>>(blocks, kThreads, launch, t);
}

}  // namespace catena::gpu
