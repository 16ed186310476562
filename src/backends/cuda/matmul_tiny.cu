// Products of small matrices in one short kernel: a library call costs more than the work here.
//
// A block computes 16 x 16 elements of the result. Its four groups of 64 threads take every fourth
// step of k, each thread 2 x 2 elements; the groups are added in a fixed order at the end.
#include "backends/cuda/matmul.h"

namespace catena::gpu {
namespace {

constexpr int kTile = 16, kDepth = 64, kGroups = 4, kThreads = 256;
// Larger problems keep the library's kernels busy enough to win.
constexpr int64_t kMostDepth = 256, kMostWorkPerProcessor = 4;

__device__ inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }

template <class T>
struct alignas(2 * sizeof(T)) Two {
  T x, y;
};

// Loads `kTile` lines of `depth` elements, line l at l * line_step, into tile[step of k][line].
template <class T>
__device__ void load_tile(T (*tile)[kTile + 2], const T* from, int64_t line_step, int64_t k_step,
                          int lines, int depth) {
  const bool lines_adjacent = line_step == 1;
  for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
    const int line = lines_adjacent ? i % kTile : i / kDepth;
    const int k = lines_adjacent ? i / kTile : i % kDepth;
    if (k >= depth) continue;
    tile[k][line] = line < lines ? from[line * line_step + k * k_step] : T(0);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) tiny_kernel(Product p) {
  __shared__ T as[kDepth][kTile + 2], bs[kDepth][kTile + 2];
  __shared__ T sums[kGroups][kTile][kTile + 1];
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  const int group = threadIdx.x / 64, place = threadIdx.x % 64;
  const int r = place / 8 * 2, c = place % 8 * 2;
  const T* a = static_cast<const T*>(p.a.data) + blockIdx.z * p.a.batch_step + row0 * p.a.row_step;
  const T* b =
      static_cast<const T*>(p.b.data) + blockIdx.z * p.b.batch_step + column0 * p.b.column_step;
  const int rows = min(kTile, int(p.m) - row0), columns = min(kTile, int(p.n) - column0);
  T s00 = 0, s01 = 0, s10 = 0, s11 = 0;
  for (int k0 = 0; k0 < int(p.k); k0 += kDepth) {
    const int depth = min(kDepth, int(p.k) - k0);
    if (k0) __syncthreads();
    load_tile(as, a + k0 * p.a.column_step, p.a.row_step, p.a.column_step, rows, depth);
    load_tile(bs, b + k0 * p.b.row_step, p.b.column_step, p.b.row_step, columns, depth);
    __syncthreads();
    for (int k = group; k < depth; k += kGroups) {
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
  // One thread an element of the tile, neighbours along the axis of the result that is adjacent.
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

bool fits_tiny_matmul(const Product& p, const Launch& launch) {
  if (p.k > kMostDepth || p.batch > 65535) return false;
  const int64_t most = kMostWorkPerProcessor * launch.multiprocessors;
  const int64_t rows = (p.m + kTile - 1) / kTile, columns = (p.n + kTile - 1) / kTile;
  if (rows > most || columns > most) return false;
  return rows * columns * p.batch * ((p.k + kDepth - 1) / kDepth) <= most;
}

void launch_tiny_matmul(bool is_double, const Product& p, const Launch& launch) {
  const dim3 grid(unsigned((p.n + kTile - 1) / kTile), unsigned((p.m + kTile - 1) / kTile),
                  unsigned(p.batch));
  if (is_double)
    tiny_kernel<double><<<grid, kThreads, 0, launch.stream>>>(p);
  else
    tiny_kernel<float><<<grid, kThreads, 0, launch.stream>>>(p);
}

}  // namespace catena::gpu
