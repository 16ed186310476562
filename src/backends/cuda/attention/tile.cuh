// Tiles of attention in shared memory and the products of a warp: 16 rows of the left operand for
// each of kRows tiles, whose B fragments are read once. The instructions are those of Ampere
// (mma.sync), which later GPUs have, too.
#pragma once

#include "backends/cuda/attention/shapes.cuh"
#include "backends/cuda/common/async_copy.cuh"
#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {
namespace {

// Starts the copy of rows of `columns` elements; rows from `there` on, and columns behind them, are
// 0.
template <class T, int kColumns, int kTileRows>
__device__ void load_tile(T* to, const T* from, int64_t stride, int there, int columns) {
  constexpr int kChunk = 16 / sizeof(T), kChunks = kColumns / kChunk;
  constexpr int kAtOnce = kAttentionThreads / kChunks;  // rows
  static_assert(kTileRows % kAtOnce == 0);
  const int first = threadIdx.x / kChunks, column = threadIdx.x % kChunks * kChunk;
  const int rows = column < columns ? there - first : 0;
  const T* const source = from + first * stride + column;
  T* const target = to + first * kTileStride<T, kColumns> + column;
#pragma unroll
  for (int row = 0; row < kTileRows; row += kAtOnce)
    copy_ahead_or_zero(target + row * kTileStride<T, kColumns>,
                       row < rows ? source + row * stride : from, row < rows);
}

// Writes rows of a tile that the warp has written, `there` of them.
template <class T, int kColumns, int kTileRows>
__device__ void store_tile(const T* from, T* to, int64_t stride, int there, int columns) {
  constexpr int kChunk = 16 / sizeof(T), kChunks = kColumns / kChunk;
  __syncwarp();
#pragma unroll 8
  for (int n = 0; n < kTileRows * kChunks / 32; ++n) {
    const int i = n * 32 + threadIdx.x % 32, row = i / kChunks, column = i % kChunks * kChunk;
    if (row < there && column < columns)
      *reinterpret_cast<uint4*>(to + row * stride + column) =
          *reinterpret_cast<const uint4*>(from + row * kTileStride<T, kColumns> + column);
  }
}

__device__ inline uint32_t shared_address(const void* p) {
  return uint32_t(__cvta_generic_to_shared(p));
}

// Four matrices of 8 x 8 numbers of 16 bits, whose rows the lanes name; as they are, and each
// transposed.
__device__ inline void load_fragment(uint32_t (&x)[4], const void* row) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(row)));
#endif
}
__device__ inline void load_transposed(uint32_t (&x)[4], const void* row) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(row)));
#endif
}

// Fragments (PTX, "Matrix fragments for mma.m16n8k16" and ".m16n8k8"). A thread has rows g and
// g + 8 and columns 2t and 2t + 1 of an accumulator of 16 x 8, where g = lane / 4 and t = lane % 4.
template <class T>
struct Products {                   // of 16 bits
  static constexpr int kStep = 16;  // columns of A in a product
  struct A {
    uint32_t x[4];
  };

  // Rows and columns of A from a tile.
  static __device__ A load(const T* tile, int stride) {
    const int lane = threadIdx.x % 32;
    A a;
    load_fragment(a.x, tile + lane % 16 * stride + lane / 16 * 8);
    return a;
  }
  // Columns 16 * step and on of accumulators.
  static __device__ A of(const float (*c)[4], int step) {
    const float *left = c[2 * step], *right = c[2 * step + 1];
    return {{pair(left[0], left[1]), pair(left[2], left[3]), pair(right[0], right[1]),
             pair(right[2], right[3])}};
  }

  // c += a b^T, where b's rows are those of a tile: 8 * kTiles of them.
  template <int kRows, int kTiles>
  static __device__ void add_rows(float (&c)[kRows][kTiles][4], const A (&a)[kRows], const T* tile,
                                  int stride, bool) {
    const int lane = threadIdx.x % 32;
    const T* from = tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8;
#pragma unroll
    for (int j = 0; j < kTiles; j += 2) {
      uint32_t b[4];
      load_fragment(b, from + j * 8 * stride);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        multiply(c[r][j], a[r], b[0], b[1]);
        multiply(c[r][j + 1], a[r], b[2], b[3]);
      }
    }
  }
  // c += a b, where b is kStep rows of a tile.
  template <int kRows, int kTiles>
  static __device__ void add(float (&c)[kRows][kTiles][4], const A (&a)[kRows], const T* tile,
                             int stride, bool) {
    const int lane = threadIdx.x % 32;
    const T* from = tile + lane % 16 * stride + lane / 16 * 8;
#pragma unroll
    for (int j = 0; j < kTiles; j += 2) {
      uint32_t b[4];
      load_transposed(b, from + j * 8);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        multiply(c[r][j], a[r], b[0], b[1]);
        multiply(c[r][j + 1], a[r], b[2], b[3]);
      }
    }
  }

 private:
  static __device__ uint32_t pair(float low, float high) {
    const Pack<T, 2> both{{Narrow<T>::from(low), Narrow<T>::from(high)}};
    return *reinterpret_cast<const uint32_t*>(&both);
  }
  static __device__ void multiply(float (&c)[4], const A& a, uint32_t b0, uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (std::is_same_v<T, __half>)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
          "{%8, %9}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0), "r"(b1));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
          "%7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0), "r"(b1));
#else
    __trap();
#endif
  }
};

// A float32 is the sum of two numbers of tf32, but for its last bits: three products of them give
// nearly what float32 would (Ootomo and Yokota 2022), one gives tf32. Columns 2t and 2t + 1 of an
// accumulator are columns t and t + 4 of A, so that `add` reads rows 2t and 2t + 1 for them.
template <>
struct Products<float> {
  static constexpr int kStep = 8;
  struct A {
    uint32_t high[4], low[4];
  };

  static __device__ A load(const float* tile, int stride) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    return split(tile[g * stride + t], tile[(g + 8) * stride + t], tile[g * stride + t + 4],
                 tile[(g + 8) * stride + t + 4]);
  }
  static __device__ A of(const float (*c)[4], int step) {
    return split(c[step][0], c[step][2], c[step][1], c[step][3]);
  }
  template <int kRows, int kTiles>
  static __device__ void add_rows(float (&c)[kRows][kTiles][4], const A (&a)[kRows],
                                  const float* tile, int stride, bool precise) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const float* row = tile + (8 * j + g) * stride + t;
#pragma unroll
      for (int r = 0; r < kRows; ++r) multiply(c[r][j], a[r], row[0], row[4], precise);
    }
  }
  template <int kRows, int kTiles>
  static __device__ void add(float (&c)[kRows][kTiles][4], const A (&a)[kRows], const float* tile,
                             int stride, bool precise) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const float* row = tile + 2 * t * stride + 8 * j + g;
#pragma unroll
      for (int r = 0; r < kRows; ++r) multiply(c[r][j], a[r], row[0], row[stride], precise);
    }
  }

 private:
  // The products take no more bits of the rest than tf32 has. Infinite numbers have NaN as rest.
  static __device__ uint32_t rounded(float x) {
    uint32_t bits = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
#endif
    return bits;
  }
  static __device__ uint32_t rest(float x, uint32_t high) {
    return __float_as_uint(x - __uint_as_float(high));
  }
  static __device__ A split(float x0, float x1, float x2, float x3) {
    A a{{rounded(x0), rounded(x1), rounded(x2), rounded(x3)}, {}};
    a.low[0] = rest(x0, a.high[0]);
    a.low[1] = rest(x1, a.high[1]);
    a.low[2] = rest(x2, a.high[2]);
    a.low[3] = rest(x3, a.high[3]);
    return a;
  }
  static __device__ void one(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap();
#endif
  }
  static __device__ void multiply(float (&c)[4], const A& a, float x0, float x1, bool precise) {
    const uint32_t b0 = rounded(x0), b1 = rounded(x1);
    if (precise) {
      one(c, a.low, b0, b1);
      one(c, a.high, rest(x0, b0), rest(x1, b1));
    }
    one(c, a.high, b0, b1);
  }
};

// Reductions over the four threads that have a row.
__device__ inline float largest_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ inline float sum_of_row(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// NaN for NaN, unlike fminf.
__device__ inline float at_most_zero(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(0.f));
  return y;
#else
  return x > 0 ? 0 : x;
#endif
}

constexpr float kLog2E = 1.44269504088896341f;
__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace
}  // namespace catena::gpu
