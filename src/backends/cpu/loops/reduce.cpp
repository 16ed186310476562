// Inner loops of reductions. See loop.h about linkage.
//
// Sums and products of float run in double, so that their error is a few roundings. Sums first add
// eight values in float, because conversions would take longer than the additions; sums of 16-bit
// floats add a whole block. Sums of double run as 32 interleaved sums over a block of elements, and
// the caller combines blocks pairwise. Integers wrap in their own type.
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/extreme.h"
#include "backends/cpu/loops/tables.h"

namespace catena::host {
namespace {

// The same 8 lanes on every level. Only passed between functions that are always inlined, so no
// calling convention is involved.
typedef float Float8 __attribute__((vector_size(32), aligned(4), may_alias));
#if defined(__AVX2__) && !defined(__AVX512F__)
// Vectors wider than the processor's would be kept in memory.
typedef double Double4 __attribute__((vector_size(32), aligned(8), may_alias));
struct Double8 {
  Double4 low, high;
};
inline __attribute__((always_inline)) Double8 operator+(Double8 a, Double8 b) {
  return {a.low + b.low, a.high + b.high};
}
inline __attribute__((always_inline)) Double8 operator*(Double8 a, Double8 b) {
  return {a.low * b.low, a.high * b.high};
}
inline __attribute__((always_inline)) Double8 fill(double x) {
  return {Double4{} + x, Double4{} + x};
}
inline __attribute__((always_inline)) Double8 widen(Float8 v) {
  return {__builtin_convertvector(__builtin_shufflevector(v, v, 0, 1, 2, 3), Double4),
          __builtin_convertvector(__builtin_shufflevector(v, v, 4, 5, 6, 7), Double4)};
}
// Lanes i and i + 4.
template <class Op>
inline __attribute__((always_inline)) Double4 join_halves(Double8 v) {
  return Op::join(v.low, v.high);
}
#else
typedef double Double8 __attribute__((vector_size(64), aligned(8), may_alias));
inline __attribute__((always_inline)) Double8 fill(double x) { return Double8{} + x; }
inline __attribute__((always_inline)) Double8 widen(Float8 v) {
  return __builtin_convertvector(v, Double8);
}
template <class Op>
inline __attribute__((always_inline)) Double8 join_halves(Double8 v) {
  typedef int64_t Order __attribute__((vector_size(64)));
  return Op::join(v, __builtin_shuffle(v, Order{4, 5, 6, 7, 4, 5, 6, 7}));
}
#endif
// Eight elements as float.
inline __attribute__((always_inline)) Float8 eight(const float* x) {
  return *reinterpret_cast<const Float8*>(x);
}
#ifdef __F16C__
inline __attribute__((always_inline)) Float8 eight(const Half* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
#endif
inline __attribute__((always_inline)) Float8 eight(const Brain* x) {
  typedef uint16_t Bits __attribute__((vector_size(16), aligned(2), may_alias));
  typedef uint32_t Wide __attribute__((vector_size(32)));
  const Bits bits = *reinterpret_cast<const Bits*>(x);
  return Float8(__builtin_convertvector(bits, Wide) << 16);
}

template <class T>
inline __attribute__((always_inline)) Double8 load(const T* x) {
  return widen(eight(x));
}
inline __attribute__((always_inline)) Double8 load(const double* x) {
  return *reinterpret_cast<const Double8*>(x);
}

struct SumOp {
  template <class V>
  static inline __attribute__((always_inline)) V step(V acc, V x) {
    return acc + x;
  }
  template <class V>
  static inline __attribute__((always_inline)) V join(V a, V b) {
    return a + b;
  }
  static constexpr int kIdentity = 0;
};
struct ProdOp {
  template <class V>
  static inline __attribute__((always_inline)) V step(V acc, V x) {
    return acc * x;
  }
  template <class V>
  static inline __attribute__((always_inline)) V join(V a, V b) {
    return a * b;
  }
  static constexpr int kIdentity = 1;
};
struct SumOfSquaresOp {
  template <class V>
  static inline __attribute__((always_inline)) V step(V acc, V x) {
    return acc + x * x;
  }
  template <class V>
  static inline __attribute__((always_inline)) V join(V a, V b) {
    return a + b;
  }
  static constexpr int kIdentity = 0;
};
// Adds lanes i and i + 4, of these i and i + 2, then the last two.
template <class Op>
inline __attribute__((always_inline)) double join_lanes(Double8 a, Double8 b, Double8 c,
                                                        Double8 d) {
  const auto four = join_halves<Op>(Op::join(Op::join(a, b), Op::join(c, d)));
  return Op::join(Op::join(four[0], four[2]), Op::join(four[1], four[3]));
}

// Arithmetic reductions of floats: A is double.
template <class Op, class T>
inline __attribute__((always_inline)) double reduce_in_double(const T* x, int64_t n) {
  Double8 acc[4];
  for (Double8& a : acc) a = fill(Op::kIdentity);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int k = 0; k < 4; ++k) acc[k] = Op::step(acc[k], load(x + i + 8 * k));
  }
  double rest = Op::kIdentity;
  for (; i < n; ++i) rest = Op::step(rest, double(widen(x[i])));
  return Op::join(join_lanes<Op>(acc[0], acc[1], acc[2], acc[3]), rest);
}
// Blocks of kRowBlock elements in order, so that the result equals that of a caller who has to pass
// a row in such blocks.
template <class Op, class T, class F>
inline __attribute__((always_inline)) void in_blocks(const char* source, int64_t n,
                                                     void* accumulator, const F& reduce_block) {
  const T* x = reinterpret_cast<const T*>(source);
  double result = reduce_block(x, n < kRowBlock ? n : kRowBlock);
  for (int64_t at = kRowBlock; at < n; at += kRowBlock)
    result = Op::join(result, reduce_block(x + at, n - at < kRowBlock ? n - at : kRowBlock));
  *static_cast<double*>(accumulator) = result;
}
template <class Op, class T>
void float_row(const char* source, int64_t n, void* accumulator) {
  in_blocks<Op, T>(source, n, accumulator,
                   [](const T* x, int64_t m) { return reduce_in_double<Op>(x, m); });
}

// Sixteen elements as float, in two halves of eight lanes.
#ifdef __AVX512F__
typedef float Float16 __attribute__((vector_size(64), aligned(4), may_alias));
inline __attribute__((always_inline)) Float16 sixteen(const float* x) {
  return *reinterpret_cast<const Float16*>(x);
}
inline __attribute__((always_inline)) Float16 sixteen(const Half* x) {
  // Not _mm512_cvtph_ps: GCC 12 warns about an undefined value in its header.
  return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
inline __attribute__((always_inline)) Float8 add_halves(Float16 v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline __attribute__((always_inline)) Float16 sixteen(const Brain* x) {
  typedef uint16_t Bits __attribute__((vector_size(32), aligned(2), may_alias));
  typedef uint32_t Wide __attribute__((vector_size(64)));
  const Bits bits = *reinterpret_cast<const Bits*>(x);
  return Float16(__builtin_convertvector(bits, Wide) << 16);
}
#else
struct Float16 {
  Float8 low, high;
};
inline __attribute__((always_inline)) Float16 operator+(Float16 a, Float16 b) {
  return {a.low + b.low, a.high + b.high};
}
template <class T>
inline __attribute__((always_inline)) Float16 sixteen(const T* x) {
  return {eight(x), eight(x + 8)};
}
inline __attribute__((always_inline)) Float8 add_halves(Float16 v) { return v.low + v.high; }
#endif

// Adds eight values in float, and the sums of eight in double.
template <class T>
inline __attribute__((always_inline)) double sum_by_eight(const T* x, int64_t n) {
  const auto at = [x](int64_t i) { return sixteen(x + i); };
  const auto eight_of = [at](int64_t i) {
    return widen(add_halves((at(i) + at(i + 16)) + (at(i + 32) + at(i + 48))));
  };
  Double8 a = fill(0), b = fill(0);
  int64_t i = 0;
  for (; i + 128 <= n; i += 128) {
    a = a + eight_of(i);
    b = b + eight_of(i + 64);
  }
  if (i + 64 <= n) {
    a = a + eight_of(i);
    i += 64;
  }
  if (i + 32 <= n) {
    b = b + widen(add_halves(at(i) + at(i + 16)));
    i += 32;
  }
  for (; i + 8 <= n; i += 8) a = a + widen(eight(x + i));
  double rest = 0;
  for (; i < n; ++i) rest += double(widen(x[i]));
  return join_lanes<SumOp>(a, b, fill(0), fill(0)) + rest;
}
// The sum of a block of 16-bit numbers, which are so much coarser than float that they are added in
// float.
template <class T>
inline __attribute__((always_inline)) double sum_in_float(const T* x, int64_t n) {
  Float16 sums[4] = {};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (int k = 0; k < 4; ++k) sums[k] = sums[k] + sixteen(x + i + 16 * k);
  }
  for (; i + 16 <= n; i += 16) sums[0] = sums[0] + sixteen(x + i);
  Double8 sum = widen(add_halves((sums[0] + sums[1]) + (sums[2] + sums[3])));
  for (; i + 8 <= n; i += 8) sum = sum + widen(eight(x + i));
  double rest = 0;
  for (; i < n; ++i) rest += double(widen(x[i]));
  return join_lanes<SumOp>(sum, fill(0), fill(0), fill(0)) + rest;
}
template <class T>
void sum_row(const char* source, int64_t n, void* accumulator) {
  in_blocks<SumOp, T>(source, n, accumulator, [](const T* x, int64_t m) {
    const double sum = sizeof(T) == 2 ? sum_in_float(x, m) : sum_by_eight(x, m);
    // Sums in float may overflow although the whole sum does not.
    return __builtin_fabs(sum) <= __DBL_MAX__ ? sum : reduce_in_double<SumOp>(x, m);
  });
}

// Adds kRows rows in one pass over the accumulators, in the order of the rows.
template <class Op, int kRows, class T, class A>
inline __attribute__((always_inline)) void add_rows(const char* source, int64_t stride, int64_t n,
                                                    A* acc) {
  const T* x[kRows];
  for (int k = 0; k < kRows; ++k) x[k] = reinterpret_cast<const T*>(source + k * stride);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    A sum = acc[i];
    for (int k = 0; k < kRows; ++k) sum = A(Op::step(sum, A(x[k][i])));
    acc[i] = sum;
  }
}
template <class Op, class T, class A>
inline __attribute__((always_inline)) void add_all_rows(const char* source, int64_t stride,
                                                        int64_t rows, int64_t n, A* acc) {
  for (; rows >= 8; rows -= 8, source += 8 * stride) add_rows<Op, 8, T>(source, stride, n, acc);
  for (; rows >= 2; rows -= 2, source += 2 * stride) add_rows<Op, 2, T>(source, stride, n, acc);
  if (rows > 0) add_rows<Op, 1, T>(source, stride, n, acc);
}

// The sums of eight rows in float, for at most kColumns columns: all rows at once. Adjacent rows
// that are not in a cache are read one after the other, because memory that is read at several
// positions of a page is far slower.
constexpr int64_t kColumns = 2048;
inline __attribute__((always_inline)) void sum_eight_rows(const char* source, int64_t stride,
                                                          int64_t n, float* sums, bool cached) {
  const auto row = [&](int k) { return reinterpret_cast<const float*>(source + k * stride); };
  constexpr int64_t kNear = 8192, kNarrow = 48;  // bytes, columns
  if (!cached && n >= kNarrow && -kNear <= stride && stride <= kNear) {
    __builtin_memcpy(sums, source, uint64_t(n) * sizeof(float));
    for (int k = 1; k < 8; ++k) {
      const float* x = row(k);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
    }
    return;
  }
  const float *a = row(0), *b = row(1), *c = row(2), *d = row(3), *e = row(4), *f = row(5),
              *g = row(6), *h = row(7);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    sums[i] = ((((((a[i] + b[i]) + c[i]) + d[i]) + e[i]) + f[i]) + g[i]) + h[i];
}
// Adds them to the accumulators. If one of them is not finite it does nothing and returns false.
inline __attribute__((always_inline)) bool add_eight_rows(const char* source, int64_t stride,
                                                          int64_t n, double* acc, bool cached) {
  alignas(64) float sums[kColumns];
  sum_eight_rows(source, stride, n, sums, cached);
  uint32_t not_finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, sums[i]);
    not_finite |= uint32_t((bits & 0x7f800000u) == 0x7f800000u);
  }
  if (not_finite) return false;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) acc[i] += double(sums[i]);
  return true;
}
void sum_columns(const char* source, int64_t stride, int64_t rows, int64_t n, void* accumulators,
                 bool cached) {
  double* acc = static_cast<double*>(accumulators);
  for (; rows >= 8; rows -= 8, source += 8 * stride) {
    for (int64_t i = 0; i < n; i += kColumns) {
      const char* block = source + i * int64_t(sizeof(float));
      const int64_t width = n - i < kColumns ? n - i : kColumns;
      if (!add_eight_rows(block, stride, width, acc + i, cached))
        add_rows<SumOp, 8, float>(block, stride, width, acc + i);
    }
  }
  add_all_rows<SumOp, float>(source, stride, rows, n, acc);
}

template <class Op, class T>
void float_columns(const char* source, int64_t stride, int64_t rows, int64_t n, void* accumulators,
                   bool) {
  add_all_rows<Op, T>(source, stride, rows, n, static_cast<double*>(accumulators));
}

template <class Op, class T>
void extreme_row(const char* source, int64_t n, void* accumulator) {
  *static_cast<T*>(accumulator) = extreme<Op>(reinterpret_cast<const T*>(source), n);
}

// All other operations: the compiler may reorder integer operations.
template <class Op, class T>
void plain_row(const char* source, int64_t n, void* accumulator) {
  const T* x = reinterpret_cast<const T*>(source);
  T result = T(Op::kIdentity);
  for (int64_t i = 0; i < n; ++i) result = T(Op::step(result, x[i]));
  *static_cast<T*>(accumulator) = result;
}
template <class Op, class T>
void plain_columns(const char* source, int64_t stride, int64_t rows, int64_t n, void* accumulators,
                   bool) {
  add_all_rows<Op, T>(source, stride, rows, n, static_cast<T*>(accumulators));
}
template <class Op, class A>
void combine(void* accumulators, const void* others, int64_t n) {
  A* acc = static_cast<A*>(accumulators);
  const A* other = static_cast<const A*>(others);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) acc[i] = A(Op::join(acc[i], other[i]));
}

template <class Op, class T>
void fill_plain_op(Tables& tables, int op, int dtype) {
  tables.reductions[op][dtype] = {&plain_row<Op, T>, &plain_columns<Op, T>, &combine<Op, T>};
}
template <class Op, class T>
void fill_extreme(Tables& tables, int op, int dtype) {
  tables.reductions[op][dtype] = {&extreme_row<Op, T>, &plain_columns<Op, T>, &combine<Op, T>};
}
template <class T>
void fill_float(Tables& tables, int dtype) {
  tables.reductions[kLoopSum][dtype] = {&float_row<SumOp, T>, &float_columns<SumOp, T>,
                                        &combine<SumOp, double>};
  tables.reductions[kLoopProd][dtype] = {&float_row<ProdOp, T>, &float_columns<ProdOp, T>,
                                         &combine<ProdOp, double>};
  tables.reductions[kLoopSumOfSquares][dtype] = {&float_row<SumOfSquaresOp, T>,
                                                 &float_columns<SumOfSquaresOp, T>,
                                                 &combine<SumOfSquaresOp, double>};
  fill_extreme<MaxOp, T>(tables, kLoopMax, dtype);
  fill_extreme<MinOp, T>(tables, kLoopMin, dtype);
}
template <class T>
void fill_plain(Tables& tables, int dtype) {
  fill_plain_op<SumOp, T>(tables, kLoopSum, dtype);
  fill_plain_op<ProdOp, T>(tables, kLoopProd, dtype);
  fill_plain_op<SumOfSquaresOp, T>(tables, kLoopSumOfSquares, dtype);
  fill_extreme<MaxOp, T>(tables, kLoopMax, dtype);
  fill_extreme<MinOp, T>(tables, kLoopMin, dtype);
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(reduce) {
  fill_plain<int8_t>(tables, kInt8Index);
  fill_plain<int16_t>(tables, kInt16Index);
  fill_plain<int32_t>(tables, kInt32Index);
  fill_plain<int64_t>(tables, kInt64Index);
  fill_plain<uint8_t>(tables, kUInt8Index);
  fill_plain<uint16_t>(tables, kUInt16Index);
  fill_plain<uint32_t>(tables, kUInt32Index);
  fill_plain<uint64_t>(tables, kUInt64Index);
  fill_float<float>(tables, kFloat32Index);
  tables.reductions[kLoopSum][kFloat32Index] = {&sum_row<float>, &sum_columns,
                                                &combine<SumOp, double>};
  fill_float<double>(tables, kFloat64Index);
  // Rows only. All other cases (columns, strided numbers, Half on v2) are converted in blocks and
  // added as float, which may differ in the last bits of a float.
#ifdef __F16C__
  tables.reductions[kLoopSum][kFloat16Index].row = &sum_row<Half>;
#endif
  tables.reductions[kLoopSum][kBFloat16Index].row = &sum_row<Brain>;
  // bool is a byte of 0 or 1: sums and maxima are "or", products and minima "and".
  fill_extreme<MaxOp, uint8_t>(tables, kLoopSum, kBoolIndex);
  fill_extreme<MinOp, uint8_t>(tables, kLoopProd, kBoolIndex);
  fill_extreme<MaxOp, uint8_t>(tables, kLoopSumOfSquares, kBoolIndex);
  fill_extreme<MaxOp, uint8_t>(tables, kLoopMax, kBoolIndex);
  fill_extreme<MinOp, uint8_t>(tables, kLoopMin, kBoolIndex);
  fill_extreme<MinOp, uint8_t>(tables, kLoopAnd, kBoolIndex);
  fill_extreme<MaxOp, uint8_t>(tables, kLoopOr, kBoolIndex);
}

}  // namespace CATENA_ISA

}  // namespace catena::host
