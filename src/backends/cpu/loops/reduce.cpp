// Inner loops of reductions. See loop.h about linkage.
//
// Sums and products of float run in double, so that their error is that of one rounding; those of
// double run in 32 interleaved sums over at most kReduceBlock elements, which the caller combines
// pairwise. Integers wrap in their own type.
#include "backends/cpu/loops/tables.h"

namespace catena::host {
namespace {

// Vectors of the compiler: the same 8 lanes on every level, whatever the processor's width.
// Passed between functions that are always inlined only, so that no calling convention is
// concerned.
typedef float Float8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double Double8 __attribute__((vector_size(64), aligned(8), may_alias));
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  using Load = Float8;
};
template <>
struct Lanes<double> {
  using Load = Double8;
};

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
// NaN wins: it replaces any accumulator and is never replaced.
struct MaxOp {
  template <class V>
  static inline __attribute__((always_inline)) V step(V acc, V x) {
    return ((x > acc) | (x != x)) ? x : acc;
  }
  template <class V>
  static inline __attribute__((always_inline)) V join(V a, V b) {
    return step(a, b);
  }
};
struct MinOp {
  template <class V>
  static inline __attribute__((always_inline)) V step(V acc, V x) {
    return ((x < acc) | (x != x)) ? x : acc;
  }
  template <class V>
  static inline __attribute__((always_inline)) V join(V a, V b) {
    return step(a, b);
  }
};

template <class Op, class V, class A>
inline __attribute__((always_inline)) A join_lanes(V a, V b, V c, V d) {
  const V v = Op::join(Op::join(a, b), Op::join(c, d));
  A lanes[8];
  for (int i = 0; i < 8; ++i) lanes[i] = v[i];
  for (int half = 4; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] = Op::join(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

// Arithmetic reductions of floats: A is double.
template <class Op, class T>
void float_row(const char* source, int64_t n, void* accumulator) {
  using Load = typename Lanes<T>::Load;
  const T* x = reinterpret_cast<const T*>(source);
  Double8 acc[4];
  for (Double8& a : acc) a = Double8{} + double(Op::kIdentity);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int k = 0; k < 4; ++k) {
      const Load v = *reinterpret_cast<const Load*>(x + i + 8 * k);
      acc[k] = Op::step(acc[k], __builtin_convertvector(v, Double8));
    }
  }
  double rest = Op::kIdentity;
  for (; i < n; ++i) rest = Op::step(rest, double(x[i]));
  *static_cast<double*>(accumulator) =
      Op::join(join_lanes<Op, Double8, double>(acc[0], acc[1], acc[2], acc[3]), rest);
}
template <class Op, class T>
void float_columns(const char* source, int64_t n, void* accumulators) {
  const T* x = reinterpret_cast<const T*>(source);
  double* acc = static_cast<double*>(accumulators);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) acc[i] = Op::step(acc[i], double(x[i]));
}

// Extremes of floats, in the type itself.
template <class Op, class T>
void extreme_row(const char* source, int64_t n, void* accumulator) {
  using Load = typename Lanes<T>::Load;
  const T* x = reinterpret_cast<const T*>(source);
  T result = x[0];
  int64_t i = 0;
  if (n >= 32) {
    Load acc[4];
    for (int k = 0; k < 4; ++k) acc[k] = *reinterpret_cast<const Load*>(x + 8 * k);
    for (i = 32; i + 32 <= n; i += 32) {
      for (int k = 0; k < 4; ++k)
        acc[k] = Op::step(acc[k], *reinterpret_cast<const Load*>(x + i + 8 * k));
    }
    result = join_lanes<Op, Load, T>(acc[0], acc[1], acc[2], acc[3]);
  }
  for (; i < n; ++i) result = Op::step(result, x[i]);
  *static_cast<T*>(accumulator) = result;
}

// Everything else: the compiler may reorder integer operations by itself.
template <class Op, class T>
void plain_row(const char* source, int64_t n, void* accumulator) {
  const T* x = reinterpret_cast<const T*>(source);
  T result;
  int64_t i = 0;
  if constexpr (requires { Op::kIdentity; })
    result = T(Op::kIdentity);
  else
    result = x[i++];
  for (; i < n; ++i) result = T(Op::step(result, x[i]));
  *static_cast<T*>(accumulator) = result;
}
template <class Op, class T>
void plain_columns(const char* source, int64_t n, void* accumulators) {
  const T* x = reinterpret_cast<const T*>(source);
  T* acc = static_cast<T*>(accumulators);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) acc[i] = T(Op::step(acc[i], x[i]));
}
template <class Op, class A>
void combine(void* accumulators, const void* others, int64_t n) {
  A* acc = static_cast<A*>(accumulators);
  const A* other = static_cast<const A*>(others);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) acc[i] = A(Op::join(acc[i], other[i]));
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
  tables.reductions[kLoopMax][dtype] = {&extreme_row<MaxOp, T>, &plain_columns<MaxOp, T>,
                                        &combine<MaxOp, T>};
  tables.reductions[kLoopMin][dtype] = {&extreme_row<MinOp, T>, &plain_columns<MinOp, T>,
                                        &combine<MinOp, T>};
}
template <class Op, class T>
void fill_plain_op(Tables& tables, int op, int dtype) {
  tables.reductions[op][dtype] = {&plain_row<Op, T>, &plain_columns<Op, T>, &combine<Op, T>};
}
template <class T>
void fill_plain(Tables& tables, int dtype) {
  fill_plain_op<SumOp, T>(tables, kLoopSum, dtype);
  fill_plain_op<ProdOp, T>(tables, kLoopProd, dtype);
  fill_plain_op<SumOfSquaresOp, T>(tables, kLoopSumOfSquares, dtype);
  fill_plain_op<MaxOp, T>(tables, kLoopMax, dtype);
  fill_plain_op<MinOp, T>(tables, kLoopMin, dtype);
}

}  // namespace

namespace CATENA_ISA {

void fill_reduce(Tables& tables) {
  fill_plain<int8_t>(tables, 1);
  fill_plain<int16_t>(tables, 2);
  fill_plain<int32_t>(tables, 3);
  fill_plain<int64_t>(tables, 4);
  fill_plain<uint8_t>(tables, 5);
  fill_plain<uint16_t>(tables, 6);
  fill_plain<uint32_t>(tables, 7);
  fill_plain<uint64_t>(tables, 8);
  fill_float<float>(tables, 11);
  fill_float<double>(tables, 12);
  // bool is a byte of 0 or 1: sums and maxima are "or", the others "and".
  fill_plain_op<MaxOp, uint8_t>(tables, kLoopSum, 0);
  fill_plain_op<MinOp, uint8_t>(tables, kLoopProd, 0);
  fill_plain_op<MaxOp, uint8_t>(tables, kLoopSumOfSquares, 0);
  fill_plain_op<MaxOp, uint8_t>(tables, kLoopMax, 0);
  fill_plain_op<MinOp, uint8_t>(tables, kLoopMin, 0);
  fill_plain_op<MinOp, uint8_t>(tables, kLoopAnd, 0);
  fill_plain_op<MaxOp, uint8_t>(tables, kLoopOr, 0);
}

}  // namespace CATENA_ISA

}  // namespace catena::host
