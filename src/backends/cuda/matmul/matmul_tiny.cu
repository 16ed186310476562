// Products of small matrices in one short kernel: a library call costs more than the work here.
//
// A block computes 16 x 16 elements of the result. It issues all its loads of 128 steps of k at
// once, and those of the next 128 steps while it computes, because latency dominates such a short
// kernel. Each of its four groups of 64 threads takes every fourth step of k, each thread 2 x 2
// elements. At the end the groups are added in a fixed order.
#include "backends/cuda/matmul/matmul.h"

namespace catena::gpu {
namespace {

constexpr int kTile = 16, kDepth = 128, kGroups = 4, kThreads = 256;
constexpr int kLoads =
    kTile * kDepth / kThreads;  // elements of an operand a thread loads at a time
// Larger problems keep the library's kernels busy enough to be faster.
constexpr int64_t kMostDepth = 512, kMostWorkPerProcessor = 4, kMostWorkBesideTf32 = 2;

__device__ inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }

template <class T>
struct alignas(2 * sizeof(T)) Two {
  T x, y;
};

// One operand of a tile: line l, step k is at l * line_step + k * k_step. A thread loads the same
// elements of every chunk of kDepth steps; adjacent threads load along the contiguous axis.
template <class T>
struct Operand {
  const T* from;
  int64_t line_step, k_step;
  int lines;

  __device__ int line(int i) const {
    const int place = i * kThreads + threadIdx.x;
    return line_step == 1 ? place % kTile : place / kDepth;
  }
  __device__ int k(int i) const {
    const int place = i * kThreads + threadIdx.x;
    return line_step == 1 ? place / kTile : place % kDepth;
  }
  __device__ void load(T (&values)[kLoads], int k0, int depth) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      values[i] = line(i) < lines && k0 + k(i) < depth
                      ? from[line(i) * line_step + (k0 + k(i)) * k_step]
                      : T(0);
  }
  __device__ void store(const T (&values)[kLoads], T (*tile)[kTile + 2]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) tile[k(i)][line(i)] = values[i];
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) tiny_kernel(Product p) {
  __shared__ T as[kDepth][kTile + 2], bs[kDepth][kTile + 2];
  __shared__ T sums[kGroups][kTile][kTile + 1];
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  const int group = threadIdx.x / 64, place = threadIdx.x % 64;
  const int r = place / 8 * 2, c = place % 8 * 2;
  const int rows = min(kTile, int(p.m) - row0), columns = min(kTile, int(p.n) - column0);
  const Operand<T> a{
      static_cast<const T*>(p.a.data) + blockIdx.z * p.a.batch_step + row0 * p.a.row_step,
      p.a.row_step, p.a.column_step, rows};
  const Operand<T> b{
      static_cast<const T*>(p.b.data) + blockIdx.z * p.b.batch_step + column0 * p.b.column_step,
      p.b.column_step, p.b.row_step, columns};
  const int depth = int(p.k);
  T next_a[kLoads], next_b[kLoads];
  a.load(next_a, 0, depth);
  b.load(next_b, 0, depth);
  T s00 = 0, s01 = 0, s10 = 0, s11 = 0;
  for (int k0 = 0; k0 < depth; k0 += kDepth) {
    if (k0) __syncthreads();
    a.store(next_a, as);
    b.store(next_b, bs);
    __syncthreads();
    if (k0 + kDepth < depth) {
      a.load(next_a, k0 + kDepth, depth);
      b.load(next_b, k0 + kDepth, depth);
    }
    const int most = min(kDepth, depth - k0);
#pragma unroll 4
    for (int k = group; k < most; k += kGroups) {
      const Two<T> va = *reinterpret_cast<const Two<T>*>(&as[k][r]);
      const Two<T> vb = *reinterpret_cast<const Two<T>*>(&bs[k][c]);
      s00 = multiply_add(va.x, vb.x, s00);
      s01 = multiply_add(va.x, vb.y, s01);
      s10 = multiply_add(va.y, vb.x, s10);
      s11 = multiply_add(va.y, vb.y, s11);
    }
  }
  sums[group][r][c] = s00;
  sums[group][r][c + 1] = s01;
  sums[group][r + 1][c] = s10;
  sums[group][r + 1][c + 1] = s11;
  __syncthreads();
  // One thread for each element of the tile; adjacent threads along the contiguous axis of the
  // result.
  const bool by_rows = p.c.column_step == 1;
  const int row = by_rows ? threadIdx.x / kTile : threadIdx.x % kTile;
  const int column = by_rows ? threadIdx.x % kTile : threadIdx.x / kTile;
  if (row >= rows || column >= columns) return;
  T sum =
      (sums[0][row][column] + sums[1][row][column]) + (sums[2][row][column] + sums[3][row][column]);
  if (p.bias) sum = sum + static_cast<const T*>(p.bias)[column0 + column];
  if (p.relu) sum = sum > T(0) || sum != sum ? sum : T(0);
  T* out = static_cast<T*>(p.c.data) + blockIdx.z * p.c.batch_step + (row0 + row) * p.c.row_step +
           (column0 + column) * p.c.column_step;
  if (p.accumulate) sum = sum + *out;
  *out = sum;
}

}  // namespace

bool fits_tiny_matmul(const Product& p, bool library_has_tf32, const Launch& launch) {
  if (p.k > kMostDepth || p.batch > 65535) return false;
  const int64_t most =
      (library_has_tf32 ? kMostWorkBesideTf32 : kMostWorkPerProcessor) * launch.multiprocessors;
  const int64_t rows = (p.m + kTile - 1) / kTile, columns = (p.n + kTile - 1) / kTile;
  if (rows > most || columns > most) return false;
  return rows * columns * p.batch * ((p.k + kDepth - 1) / kDepth) <= most;
}

void launch_tiny_matmul(bool is_double, const Product& p, const Launch& launch) {
  const dim3 grid(unsigned((p.n + kTile - 1) / kTile), unsigned((p.m + kTile - 1) / kTile),
                  unsigned(p.batch));
  // In turn: launched early, as other kernels are, short products take 0.1 to 0.2 us longer.
  if (is_double)
    tiny_kernel<double><<<grid, kThreads, 0, launch.stream>>>(p);
  else
    tiny_kernel<float><<<grid, kThreads, 0, launch.stream>>>(p);
}

}  // namespace catena::gpu
