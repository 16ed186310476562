// Products of small matrices in one short kernel: a library call costs more than the work here.
//
// A block computes 16 x 16 elements of the result. It issues all its loads of 32, 64 or 128 steps
// of k at once, and those of the next 128 while it computes, because latency dominates such a short
// kernel. Each of its four groups of 64 threads takes every fourth step of k, each thread 2 x 2
// elements. At the end the groups are added in a fixed order.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/matmul/matmul.h"

namespace catena::gpu {
namespace {

constexpr int kTile = 16, kPitch = kTile + 2, kGroups = 4, kThreads = 256;
// The most steps of k that a block loads at a time. Products of fewer steps have kernels of their
// own, which load 32 or 64: loading and storing zeros would take as long as the products.
constexpr int kMostSteps = 128;
// Larger problems keep the library's kernels busy enough to be faster, in tf32 too. kMostChunks is
// chunks of kMostSteps, of all tiles together, for each multiprocessor.
constexpr int64_t kMostDepth = 512, kMostChunks = 4;

__device__ inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }

template <class T>
struct alignas(2 * sizeof(T)) Two {
  T x, y;
};

// What a thread brings of an operand: its elements of a chunk of kDepth steps of k, of the same
// places in every chunk. Adjacent threads load along the contiguous axis.
template <class T, int kDepth>
struct Operand {
  static constexpr int kElements = kTile * kDepth / kThreads;
  int line, k;            // the place of the first one in the tile
  int next_line, next_k;  // from one to the next
  int lines;              // rows of a or columns of b, of the tile
  const T* from;          // the first one of the next chunk
  int64_t step, chunk_step;
  T values[kElements];

  __device__ Operand(const T* tile, int64_t line_step, int64_t k_step, int lines) : lines(lines) {
    const bool along_lines = line_step == 1;
    line = int(along_lines ? threadIdx.x % kTile : threadIdx.x / kDepth);
    k = int(along_lines ? threadIdx.x / kTile : threadIdx.x % kDepth);
    next_line = along_lines ? 0 : kThreads / kDepth;
    next_k = along_lines ? kThreads / kTile : 0;
    from = tile + line * line_step + k * k_step;
    step = next_line * line_step + next_k * k_step;
    chunk_step = kDepth * k_step;
  }
  // `depth`: how many steps of k are left.
  __device__ void load(int depth) {
#pragma unroll
    for (int i = 0; i < kElements; ++i)
      values[i] = line + i * next_line < lines && k + i * next_k < depth ? from[i * step] : T(0);
    from += chunk_step;
  }
  __device__ void store(T (*tile)[kPitch]) const {
    T* to = &tile[k][line];
    const int to_next = next_k * kPitch + next_line;
#pragma unroll
    for (int i = 0; i < kElements; ++i) to[i * to_next] = values[i];
  }
};

template <class T, int kDepth>
__global__ void __launch_bounds__(kThreads) tiny_kernel(Product p) {
  wait_for_previous_kernel();
  __shared__ T as[kDepth][kPitch], bs[kDepth][kPitch];
  __shared__ T sums[kGroups][kTile][kTile + 1];
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  const int rows = min(kTile, int(p.m) - row0), columns = min(kTile, int(p.n) - column0);
  Operand<T, kDepth> a(
      static_cast<const T*>(p.a.data) + blockIdx.z * p.a.batch_step + row0 * p.a.row_step,
      p.a.row_step, p.a.column_step, rows);
  Operand<T, kDepth> b(
      static_cast<const T*>(p.b.data) + blockIdx.z * p.b.batch_step + column0 * p.b.column_step,
      p.b.column_step, p.b.row_step, columns);
  const int group = threadIdx.x / 64, r = threadIdx.x % 64 / 8 * 2, c = threadIdx.x % 8 * 2;
  T s00 = 0, s01 = 0, s10 = 0, s11 = 0;
  const auto compute = [&](int steps) {
#pragma unroll 4
    for (int k = group; k < steps; k += kGroups) {
      const Two<T> va = *reinterpret_cast<const Two<T>*>(&as[k][r]);
      const Two<T> vb = *reinterpret_cast<const Two<T>*>(&bs[k][c]);
      s00 = multiply_add(va.x, vb.x, s00);
      s01 = multiply_add(va.x, vb.y, s01);
      s10 = multiply_add(va.y, vb.x, s10);
      s11 = multiply_add(va.y, vb.y, s11);
    }
  };
  // While a chunk is computed, the loads of the next one are in flight.
  int left = int(p.k);
  a.load(left);
  b.load(left);
  while (true) {
    a.store(as);
    b.store(bs);
    __syncthreads();
    const int steps = left;
    left -= kDepth;
    if (kDepth < kMostSteps || left <= 0) {
      compute(steps);
      break;
    }
    a.load(left);
    b.load(left);
    compute(kDepth);
    __syncthreads();
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

template <class T>
void launch_tiny(const Product& p, const Launch& launch) {
  const dim3 grid(unsigned((p.n + kTile - 1) / kTile), unsigned((p.m + kTile - 1) / kTile),
                  unsigned(p.batch));
  if (p.k <= 32)
    launch_kernel<tiny_kernel<T, 32>>(grid, kThreads, launch, p);
  else if (p.k <= 64)
    launch_kernel<tiny_kernel<T, 64>>(grid, kThreads, launch, p);
  else
    launch_kernel<tiny_kernel<T, kMostSteps>>(grid, kThreads, launch, p);
}

}  // namespace

bool fits_tiny_matmul(const Product& p, const Launch& launch) {
  if (p.k > kMostDepth || p.batch > 65535) return false;
  const int64_t most = kMostChunks * launch.multiprocessors;
  const int64_t rows = (p.m + kTile - 1) / kTile, columns = (p.n + kTile - 1) / kTile;
  if (rows > most || columns > most) return false;
  return rows * columns * p.batch * ((p.k + kMostSteps - 1) / kMostSteps) <= most;
}

void launch_tiny_matmul(bool is_double, const Product& p, const Launch& launch) {
  if (is_double)
    launch_tiny<double>(p, launch);
  else
    launch_tiny<float>(p, launch);
}

}  // namespace catena::gpu
