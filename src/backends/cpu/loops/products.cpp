// The inner loops of matrix products: tiles of the result that stay in registers, the packing that
// supplies their operands, and products with a vector. backends/cpu/matmul/gemm.cpp cuts a product
// into these pieces. The method is from K. Goto and R. van de Geijn, Anatomy of high-performance
// matrix multiplication (ACM TOMS 34, 2008).
#include <type_traits>

#include "backends/cpu/loops/simd.h"
#include "backends/cpu/loops/tables.h"

namespace catena::host {
namespace {

#define CATENA_INLINE inline __attribute__((always_inline))

// As many rows of a tile that its sums, one row of b and one element of a fill the registers.
// The same for tiles of dot products, and for the lines of b that shallow_rows keeps in registers.
#if defined(__AVX512F__)
constexpr int kRows = 14, kDotSide = 5, kShallow = 14;
#elif defined(__AVX2__)
constexpr int kRows = 6, kDotSide = 3, kShallow = 6;
#else
constexpr int kRows = 4, kDotSide = 3, kShallow = 6;
#endif
constexpr int kVectors = 2;  // of a row of the tile

// Element (i, step) of a. Either columns are contiguous (kAcross), or each row is. For rows, two
// pointers and four offsets address up to 14 rows without a register for each.
template <class T, bool kAcross>
struct Left {
  const char *first, *second;
  int64_t step, by3, by5;
  CATENA_INLINE Left(const T* a, int64_t stride)
      : first(reinterpret_cast<const char*>(a)),
        second(first + 7 * stride * int64_t(sizeof(T))),
        step(stride * int64_t(sizeof(T))),
        by3(3 * step),
        by5(5 * step) {}
  CATENA_INLINE T at(int i) const {
    if (kAcross) return reinterpret_cast<const T*>(first)[i];
    const char* base = i < 7 ? first : second;
    const int row = i % 7;
    const int64_t offset = row == 3 ? by3 : row == 5 ? by5 : row == 6 ? 2 * by3 : row * step;
    return *reinterpret_cast<const T*>(base + offset);
  }
  CATENA_INLINE void next() {
    first += kAcross ? step : int64_t(sizeof(T));
    second += kAcross ? 0 : int64_t(sizeof(T));
  }
};

template <class T, int M, int N>
CATENA_INLINE void store_tile(const typename Simd<T>::Vector (&sums)[M][N], T* c, int64_t c_row,
                              int64_t columns, bool accumulate) {
  using S = Simd<T>;
  const int64_t last = columns - (N - 1) * S::kLanes;  // elements of the last vector
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    T* row = c + i * c_row;
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) {
      T* at = row + j * S::kLanes;
      if (j + 1 < N || last == S::kLanes)
        S::store(at, accumulate ? S::add(S::load(at), sums[i][j]) : sums[i][j]);
      else
        S::store_part(at, accumulate ? S::add(S::load_part(at, last), sums[i][j]) : sums[i][j],
                      last);
    }
  }
}

// Lines of b that a packing tile asks for ahead of its use: they are far apart, where the processor
// foresees nothing.
constexpr int64_t kLinesAhead = 8;

template <class T, int M, int N, bool kAcross, bool kPacks>
CATENA_INLINE void run_tile(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_row,
                            T* c, int64_t c_row, int64_t columns, bool accumulate,
                            const Ahead<T>& ahead, T* packed) {
  using S = Simd<T>;
  typename S::Vector sums[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sums[i][j] = S::all(0);
  Left<T, kAcross> left(a, a_stride);
  // The tile of c and what is needed next are prefetched meanwhile, one row at a time. Prefetching
  // all of it at once would delay the loads of a and b.
  const T *fetched = c, *coming = ahead.at;
  int64_t rows = k < kShallow ? 0 : M, more = k < kShallow ? 0 : ahead.count;
  const int64_t pace = k < 128 ? (k + 15) / 16 : 8;
  for (int64_t l = 0; l < k;) {
    int64_t end = k;
    if (rows > 0) {
      __builtin_prefetch(fetched, 1);
      if (N > 1) __builtin_prefetch(fetched + S::kLanes, 1);
      fetched += c_row;
      --rows;
    }
    if (more > 0) {
      __builtin_prefetch(coming, 0, 2);
      __builtin_prefetch(coming + S::kLanes, 0, 2);
      coming += ahead.step;
      --more;
    }
    if (rows + more > 0 && l + pace < k) end = l + pace;
    for (; l < end; ++l) {
      typename S::Vector right[N];
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) right[j] = S::load(b + j * S::kLanes);
      if constexpr (kPacks) {
#pragma GCC unroll 2
        for (int j = 0; j < N; ++j) {
          S::store(packed + j * S::kLanes, right[j]);
          __builtin_prefetch(b + kLinesAhead * b_row + j * S::kLanes);
        }
        packed += N * S::kLanes;
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const auto x = S::all(left.at(i));
#pragma GCC unroll 2
        for (int j = 0; j < N; ++j) sums[i][j] = S::fma(x, right[j], sums[i][j]);
      }
      left.next();
      b += b_row;
    }
  }
  store_tile<T, M, N>(sums, c, c_row, columns, accumulate);
}

template <class T, int M, int N, bool kAcross>
void tile(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_row, T* c, int64_t c_row,
          int64_t columns, bool accumulate, const Ahead<T>& ahead) {
  run_tile<T, M, N, kAcross, false>(k, a, a_stride, b, b_row, c, c_row, columns, accumulate, ahead,
                                    nullptr);
}
template <class T, int M, bool kAcross>
void packing_tile(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_row, T* c,
                  int64_t c_row, int64_t columns, bool accumulate, const Ahead<T>& ahead,
                  T* packed) {
  run_tile<T, M, kVectors, kAcross, true>(k, a, a_stride, b, b_row, c, c_row, columns, accumulate,
                                          ahead, packed);
}

template <class T, int M>
void fill_tiles(GemmLoops<T>& loops) {
  loops.tile[0][0][M - 1] = &tile<T, M, 1, false>;
  loops.tile[0][1][M - 1] = &tile<T, M, 1, true>;
  loops.tile[1][0][M - 1] = &tile<T, M, 2, false>;
  loops.tile[1][1][M - 1] = &tile<T, M, 2, true>;
  if constexpr (2 * M > kRows) {
    loops.packing_tile[0][M - 1] = &packing_tile<T, M, false>;
    loops.packing_tile[1][M - 1] = &packing_tile<T, M, true>;
  }
  if constexpr (M > 1) fill_tiles<T, M - 1>(loops);
}

// A panel of b stays in registers while the rows of a and c are streamed. Tiles of so little depth
// would spend as much time between their loops as in them.
template <class T, int N, int K>
void shallow_rows(int64_t rows, const T* a, int64_t a_row, const T* b, int64_t b_row, T* c,
                  int64_t c_row, int64_t columns, bool accumulate) {
  using S = Simd<T>;
  typename S::Vector right[K][N];
#pragma GCC unroll 16
  for (int l = 0; l < K; ++l)
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) right[l][j] = S::load(b + l * b_row + j * S::kLanes);
  for (int64_t i = 0; i < rows; ++i) {
    typename S::Vector sums[1][N];
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sums[0][j] = S::all(0);
#pragma GCC unroll 16
    for (int l = 0; l < K; ++l) {
      const auto x = S::all(a[i * a_row + l]);
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) sums[0][j] = S::fma(x, right[l][j], sums[0][j]);
    }
    store_tile<T, 1, N>(sums, c + i * c_row, c_row, columns, accumulate);
  }
}

template <class T, int K>
void fill_shallow(GemmLoops<T>& loops) {
  loops.shallow_rows[0][K - 1] = &shallow_rows<T, 1, K>;
  loops.shallow_rows[1][K - 1] = &shallow_rows<T, 2, K>;
  if constexpr (K > 1) fill_shallow<T, K - 1>(loops);
}

// Tiles of dot products ----------------------------------------------------------------------

// The totals of 16 / sizeof(T) vectors. Each total is added in the same order, whatever its
// position.
template <class T, int kDeep>
CATENA_INLINE void totals(typename Simd<T>::Vector (&v)[kDeep], T* to) {
  typedef T Quarter __attribute__((vector_size(16)));
  constexpr int kQuarters = Simd<T>::kLanes / kDeep;
  Simd<T>::transpose(v);
  for (int i = 1; i < kDeep; ++i) v[0] = Simd<T>::add(v[0], v[i]);
  Quarter quarters[kQuarters];
  __builtin_memcpy(quarters, &v[0], sizeof quarters);
  for (int i = 1; i < kQuarters; ++i) quarters[0] += quarters[i];
  __builtin_memcpy(to, quarters, sizeof(Quarter));
}

template <class T, int M, int N>
void dot_tile(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* c, int64_t c_row,
              int64_t c_column, bool accumulate) {
  using S = Simd<T>;
  constexpr int kDeep = 16 / sizeof(T), kGroups = (M * N + kDeep - 1) / kDeep;
  typename S::Vector sums[kGroups][kDeep];
#pragma GCC unroll 28
  for (int i = 0; i < kGroups * kDeep; ++i) sums[i / kDeep][i % kDeep] = S::all(0);
  const auto step = [&](int64_t l, auto load) __attribute__((always_inline)) {
    typename S::Vector right[N];
#pragma GCC unroll 5
    for (int j = 0; j < N; ++j) right[j] = load(b + j * b_row + l);
#pragma GCC unroll 5
    for (int i = 0; i < M; ++i) {
      const auto left = load(a + i * a_row + l);
#pragma GCC unroll 5
      for (int j = 0; j < N; ++j) {
        auto& sum = sums[(i * N + j) / kDeep][(i * N + j) % kDeep];
        sum = S::fma(left, right[j], sum);
      }
    }
  };
  int64_t l = 0;
  for (; l + S::kLanes <= k; l += S::kLanes) step(l, [](const T* p) { return S::load(p); });
  if (l < k) step(l, [&](const T* p) { return S::load_part(p, k - l); });
  T results[kGroups * kDeep];
#pragma GCC unroll 16
  for (int i = 0; i < kGroups; ++i) totals<T, kDeep>(sums[i], results + i * kDeep);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      T& to = c[i * c_row + j * c_column];
      to = accumulate ? to + results[i * N + j] : results[i * N + j];
    }
}

template <class T, int M, int N>
void fill_dots(GemmLoops<T>& loops) {
  loops.dot_tile[M - 1][N - 1] = &dot_tile<T, M, N>;
  if constexpr (N > 1)
    fill_dots<T, M, N - 1>(loops);
  else if constexpr (M > 1)
    fill_dots<T, M - 1, kDotSide>(loops);
}

// Packing ------------------------------------------------------------------------------------

// Transposes at most one vector of rows, each contiguous along k: to[l * step + i], reading 16
// bytes of each row at a time. Whole vectors are stored; elements behind the rows are undefined.
template <class T>
void pack_group(const T* from, int64_t stride, int64_t rows, int64_t k, T* to, int64_t step) {
  using S = Simd<T>;
  constexpr int kDeep = 16 / sizeof(T);
  const T* row[S::kLanes];
  for (int64_t i = 0; i < S::kLanes; ++i) row[i] = from + (i < rows ? i : 0) * stride;
  int64_t l = 0;
  for (; l + kDeep <= k; l += kDeep) {
    typename S::Vector v[kDeep];
#pragma GCC unroll 4
    for (int i = 0; i < kDeep; ++i) v[i] = S::template quarters<kDeep>(row + i, l);
    S::transpose(v);
#pragma GCC unroll 4
    for (int i = 0; i < kDeep; ++i) S::store(to + (l + i) * step, v[i]);
  }
  for (; l < k; ++l)
    for (int64_t i = 0; i < rows; ++i) to[l * step + i] = row[i][l];
}

// to[l * step + i] = row i at l. The last group goes first: what it stores behind its rows belongs
// to the next column, whose groups are stored later.
template <class T>
void pack_rows(const T* from, int64_t stride, int64_t rows, int64_t k, T* to, int64_t step) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  for (int64_t first = (rows - 1) / kLanes * kLanes; first >= 0; first -= kLanes) {
    const int64_t count = rows - first < kLanes ? rows - first : kLanes;
    pack_group<T>(from + first * stride, stride, count, k, to + first, step);
  }
}

// to[l * step + i] = element i of line l, for `count` <= step elements.
template <class T>
void pack_lines(const T* from, int64_t stride, int64_t count, int64_t k, T* to, int64_t step) {
  using S = Simd<T>;
  constexpr int64_t kLanes = S::kLanes;
  if (count == kVectors * kLanes) {
    for (int64_t l = 0; l < k; ++l) {
      const auto x = S::load(from + l * stride), y = S::load(from + l * stride + kLanes);
      S::store(to + l * step, x);
      S::store(to + l * step + kLanes, y);
    }
    return;
  }
  const int64_t whole = count / kLanes * kLanes, rest = count - whole;
  for (int64_t l = 0; l < k; ++l) {
    const T* line = from + l * stride;
    T* out = to + l * step;
    for (int64_t i = 0; i < whole; i += kLanes) S::store(out + i, S::load(line + i));
    if (rest > 0) S::store(out + whole, S::load_part(line + whole, rest));
  }
}

// Vectors ------------------------------------------------------------------------------------

template <class T>
CATENA_INLINE T total(typename Simd<T>::Vector v) {
  constexpr int kLanes = Simd<T>::kLanes;
  T lanes[kLanes];
  Simd<T>::store(lanes, v);
#pragma GCC unroll 4
  for (int half = kLanes / 2; half >= 1; half /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

template <class T, int M>
CATENA_INLINE void dot_rows(int64_t k, const T* a, int64_t a_row, const T* x, T* y,
                            bool accumulate) {
  using S = Simd<T>;
  constexpr int64_t kLanes = S::kLanes;
  constexpr int kChains = M == 1 ? 4 : 1;  // independent sums of one row
  typename S::Vector sums[M][kChains];
  for (auto& row : sums)
    for (auto& sum : row) sum = S::all(0);
  int64_t l = 0;
  for (; l + kChains * kLanes <= k; l += kChains * kLanes)
    for (int q = 0; q < kChains; ++q) {
      const auto v = S::load(x + l + q * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i)
        sums[i][q] = S::fma(S::load(a + i * a_row + l + q * kLanes), v, sums[i][q]);
    }
  for (; l < k; l += kLanes) {
    const int64_t count = k - l < kLanes ? k - l : kLanes;
    const bool part = count < kLanes;
    const auto v = part ? S::load_part(x + l, count) : S::load(x + l);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const T* row = a + i * a_row + l;
      sums[i][0] = S::fma(part ? S::load_part(row, count) : S::load(row), v, sums[i][0]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    for (int q = 1; q < kChains; ++q) sums[i][0] = S::add(sums[i][0], sums[i][q]);
    const T sum = total<T>(sums[i][0]);
    y[i] = accumulate ? y[i] + sum : sum;
  }
}

// y[i] (+)= row i of a times x.
template <class T>
void dots(int64_t rows, int64_t k, const T* a, int64_t a_row, const T* x, T* y, bool accumulate) {
  constexpr int kTogether = 8;
  int64_t i = 0;
  for (; i + kTogether <= rows; i += kTogether)
    dot_rows<T, kTogether>(k, a + i * a_row, a_row, x, y + i, accumulate);
  for (; i < rows; ++i) dot_rows<T, 1>(k, a + i * a_row, a_row, x, y + i, accumulate);
}

template <class T, int K>
CATENA_INLINE void add_lines(int64_t n, const T* b, int64_t b_row, const T* x, T* y,
                             bool accumulate) {
  using S = Simd<T>;
  constexpr int64_t kLanes = S::kLanes;
  typename S::Vector factors[K];
#pragma GCC unroll 8
  for (int l = 0; l < K; ++l) factors[l] = S::all(x[l]);
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t count = n - j < kLanes ? n - j : kLanes;
    const bool part = count < kLanes;
    auto sum = S::all(0);
    if (accumulate) sum = part ? S::load_part(y + j, count) : S::load(y + j);
#pragma GCC unroll 8
    for (int l = 0; l < K; ++l) {
      const T* line = b + l * b_row + j;
      sum = S::fma(factors[l], part ? S::load_part(line, count) : S::load(line), sum);
    }
    if (part)
      S::store_part(y + j, sum, count);
    else
      S::store(y + j, sum);
  }
}

// y (+)= the sum of the k lines of b, each times its element of x.
template <class T>
void add_block(int64_t k, int64_t n, const T* b, int64_t b_row, const T* x, T* y, bool add) {
  constexpr int kTogether = 8;
  int64_t l = 0;
  for (; l + kTogether <= k; l += kTogether, add = true)
    add_lines<T, kTogether>(n, b + l * b_row, b_row, x + l, y, add);
  for (; l < k; ++l, add = true) add_lines<T, 1>(n, b + l * b_row, b_row, x + l, y, add);
}

// The same in blocks of lines, so that a long sum does not outgrow its terms' digits.
template <class T>
void combine(int64_t k, int64_t n, const T* b, int64_t b_row, const T* x, T* y, bool accumulate) {
  constexpr int64_t kPart = 2048;  // elements of y that stay in the first-level cache
  constexpr int64_t kLines = 512;
  T sums[kPart];
  for (int64_t j = 0; j < n; j += kPart) {
    const int64_t count = n - j < kPart ? n - j : kPart;
    add_block(k < kLines ? k : kLines, count, b + j, b_row, x, y + j, accumulate);
    for (int64_t l = kLines; l < k; l += kLines) {
      const int64_t lines = k - l < kLines ? k - l : kLines;
      add_block(lines, count, b + l * b_row + j, b_row, x + l, sums, false);
      for (int64_t i = 0; i < count; ++i) y[j + i] += sums[i];
    }
  }
}

template <class T>
GemmLoops<T> loops() {
  GemmLoops<T> result{};
  result.rows = kRows;
  result.lanes = Simd<T>::kLanes;
  result.shallow = kShallow;
  result.dot_side = kDotSide;
  fill_tiles<T, kRows>(result);
  fill_shallow<T, kShallow>(result);
  fill_dots<T, kDotSide, kDotSide>(result);
  result.pack_rows = &pack_rows<T>;
  result.pack_lines = &pack_lines<T>;
  result.dots = &dots<T>;
  result.combine = &combine<T>;
  return result;
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(products) {
  tables.gemm_float = loops<float>();
  tables.gemm_double = loops<double>();
}

}  // namespace CATENA_ISA

}  // namespace catena::host
