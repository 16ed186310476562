// Tables of the inner loops, which are compiled once for each x86-64 level.
//
// The loops themselves include this file, so it must not bring in any inline function: the linker
// could keep the copy that was compiled for a newer processor.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/kernels/elementwise_columns.h"

namespace catena::host {

// Indices of tables that have an entry for each dtype, in the order of catena::Dtype.
enum : int {
#define CATENA_DTYPE(value, ...) value##Index,
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
  kDtypes
};

// pointers[0] is the output, the inputs follow. All operands are contiguous and aligned to their
// elements. Inputs of loops with takes_scalars may also be one repeated element (stride 0). The
// output may be exactly one of the inputs.
using Loop = void (*)(char* const* pointers, const int64_t* strides, int64_t n);
struct LoopEntry {
  Loop loop = nullptr;
  Loop streaming = nullptr;    // the same for operands larger than the caches
  bool takes_scalars = false;  // inputs may have stride 0
  bool heavy = false;          // many instructions an element: threads pay earlier
};
// Any strides in bytes, also 0 and negative.
using CastLoop = void (*)(const char* source, int64_t source_stride, char* destination,
                          int64_t destination_stride, int64_t n);

// Partial results of n contiguous elements, stored in the 8-byte slot of the accumulator type:
// double for sums of floats, the dtype itself for maxima, minima and integers.
enum ReduceLoopOp {
  kLoopSum,
  kLoopProd,
  kLoopMax,
  kLoopMin,
  kLoopSumOfSquares,
  kLoopAnd,
  kLoopOr,
  kReduceLoops
};
// *accumulator = reduction of n >= 1 contiguous elements.
using ReduceRow = void (*)(const char* source, int64_t n, void* accumulator);
// accumulators[j] = op(accumulators[j], row[j]) for n columns, for each of `rows` rows in order;
// rows are `stride` bytes apart. `cached` says whether they are in a cache and only affects speed.
using ReduceColumns = void (*)(const char* source, int64_t stride, int64_t rows, int64_t n,
                               void* accumulators, bool cached);
// accumulators[j] = op(accumulators[j], others[j]): combines partial results.
using ReduceCombine = void (*)(void* accumulators, const void* others, int64_t n);
// Rows of floats are reduced in blocks of this size, in order.
inline constexpr int64_t kRowBlock = 1024;

struct ReduceEntry {
  ReduceRow row = nullptr;  // of 16-bit floats into the accumulator of float, where there is one
  ReduceColumns columns = nullptr;
  ReduceCombine combine = nullptr;
};

// The position of the first NaN, or else of the first extreme, of n >= 1 contiguous elements.
using ArgRow = int64_t (*)(const char* source, int64_t n);
// Where row[j] beats best[j], best[j] becomes row[j] and positions[j] becomes `position`.
using ArgColumns = void (*)(const char* row, int64_t n, int32_t position, char* best,
                            int32_t* positions);
struct ArgEntry {
  ArgRow row = nullptr;
  ArgColumns columns = nullptr;
};

// Softmax over a row of n contiguous elements; T is float or double.
template <class T>
struct SoftmaxLoops {
  T (*max)(const T* x, int64_t n);
  // y = exp(x - shift); returns the sum.
  T (*exp_shifted)(const T* x, T shift, T* y, int64_t n);
  T (*sum_exp_shifted)(const T* x, T shift, int64_t n);
  void (*scale)(T* y, T factor, int64_t n);                         // y *= factor
  void (*subtract)(const T* x, T shift, T value, T* y, int64_t n);  // y = (x - shift) - value
  // gx = y * (gy - dot)
  void (*gradient)(const T* y, const T* gy, T dot, T* gx, int64_t n);
  // gx = gy - exp(y) * sum
  void (*log_gradient)(const T* y, const T* gy, T sum, T* gx, int64_t n);
  T (*dot)(const T* a, const T* b, int64_t n);
  T (*sum)(const T* a, int64_t n);
  // gx = exp((x - shift) - log_sum) * scale
  void (*cross_entropy_gradient)(const T* x, T shift, T log_sum, T scale, T* gx, int64_t n);
};

// Loops of update rules: rule_loops.h.
struct RuleLoops;

// n elements from Philox block `first` on, with the given seed. RandomCall describes the words.
struct RandomLoops {
  void (*bits)(uint64_t seed, uint64_t first, uint64_t* out, int64_t n);    // words 0,1 of each
  void (*halves)(uint64_t seed, uint64_t first, uint64_t* out, int64_t n);  // words 0,1 and 2,3
  void (*uniform_float)(uint64_t seed, uint64_t first, float low, float high, float* out,
                        int64_t n);
  void (*uniform_double)(uint64_t seed, uint64_t first, double low, double high, double* out,
                         int64_t n);
  void (*normal_float)(uint64_t seed, uint64_t first, float mean, float deviation, float* out,
                       int64_t n);
  void (*normal_double)(uint64_t seed, uint64_t first, double mean, double deviation, double* out,
                        int64_t n);
  // y = keep ? x * scale : 0
  void (*dropout_float)(uint64_t seed, uint64_t first, float ratio, float scale, const float* x,
                        float* y, int64_t n);
  void (*dropout_double)(uint64_t seed, uint64_t first, float ratio, double scale, const double* x,
                         double* y, int64_t n);
};

// sums[j] += factor * row[j] for n integers (bool: "or" of "and").
using AddScaled = void (*)(const char* row, const void* factor, char* sums, int64_t n);

// Sorts rows of 1 <= n <= kShortSortRow contiguous elements. The destination may be the source. The
// scratch memory of kSortScratch bytes is aligned to 64.
using SortRows = void (*)(const char* source, int64_t rows, int64_t n, char* destination,
                          void* scratch);
inline constexpr int64_t kShortSortRow = 256, kSortScratch = kShortSortRow * 64;

// Pieces of matrix products; T is float or double. A panel holds `lanes` or 2 * lanes columns of b,
// row by row.
inline constexpr int kMaxTileRows = 14, kMaxShallow = 14, kMaxDotSide = 5;
// What a tile prefetches for later: two cache lines at each of `count` addresses.
template <class T>
struct Ahead {
  const T* at;
  int64_t step, count;
};
template <class T>
struct GemmLoops {
  int rows;   // the most rows of a tile
  int lanes;  // elements of a vector; a tile is one or two vectors wide
  // tile[vectors - 1][across][m - 1]: the first `columns` of (m, vectors * lanes) elements of c,
  // (+)= the product of m rows of a and k lines of b, `b_row` elements apart, all of which have
  // vectors * lanes elements to read. `across`: element (i, l) of a is a[l * a_stride + i], else
  // a[i * a_stride + l]. columns > (vectors - 1) * lanes.
  void (*tile[2][2][kMaxTileRows])(int64_t k, const T* a, int64_t a_stride, const T* b,
                                   int64_t b_row, T* c, int64_t c_row, int64_t columns,
                                   bool accumulate, const Ahead<T>& ahead);
  // The same with two vectors, for m > rows / 2: leaves the lines of b in `packed` as well, one
  // after the other, so that packing them takes little time of its own.
  void (*packing_tile[2][kMaxTileRows])(int64_t k, const T* a, int64_t a_stride, const T* b,
                                        int64_t b_row, T* c, int64_t c_row, int64_t columns,
                                        bool accumulate, const Ahead<T>& ahead, T* packed);
  // The same for any number of rows, if the panel's depth k <= shallow fits the registers:
  // shallow_rows[vectors - 1][k - 1]. Rows of a are contiguous.
  int shallow;
  void (*shallow_rows[2][kMaxShallow])(int64_t rows, const T* a, int64_t a_row, const T* b,
                                       int64_t b_row, T* c, int64_t c_row, int64_t columns,
                                       bool accumulate);
  // dot_tile[m - 1][n - 1], m, n <= dot_side: element (i, j) of c (+)= row i of a times row j of b,
  // k contiguous elements each.
  int dot_side;
  void (*dot_tile[kMaxDotSide][kMaxDotSide])(int64_t k, const T* a, int64_t a_row, const T* b,
                                             int64_t b_row, T* c, int64_t c_row, int64_t c_column,
                                             bool accumulate);
  // to[l * step + i] = from[i * stride + l] for i < rows, l < k. Up to rows + lanes - 1 elements
  // are written at each l; those behind `rows` are undefined.
  void (*pack_rows)(const T* from, int64_t stride, int64_t rows, int64_t k, T* to, int64_t step);
  // to[l * step + i] = from[l * stride + i] for i < count, l < k; otherwise as above.
  void (*pack_lines)(const T* from, int64_t stride, int64_t count, int64_t k, T* to, int64_t step);
  // y[i] (+)= row i of a, k contiguous elements, times x.
  void (*dots)(int64_t rows, int64_t k, const T* a, int64_t a_row, const T* x, T* y,
               bool accumulate);
  // y (+)= sum over l < k of x[l] times line l of b, n contiguous elements. k > 0.
  void (*combine)(int64_t k, int64_t n, const T* b, int64_t b_row, const T* x, T* y,
                  bool accumulate);
};

struct Tables {
  // float16 and bfloat16 have few, for contiguous operands only; otherwise they use the loops of
  // float32.
  LoopEntry loops[kElementwiseRows][kDtypes];
  CastLoop casts[kDtypes][kDtypes];  // [from][to]
  ReduceEntry reductions[kReduceLoops][kDtypes];
  ArgEntry arg_extremes[2][kDtypes];  // [maximum]; null for the 16-bit floats
  SoftmaxLoops<float> softmax_float;
  SoftmaxLoops<double> softmax_double;
  const RuleLoops* rules;
  RandomLoops random;
  // row = relu?(row + bias), bias may be null (then relu).
  void (*epilogue_float)(float* row, const float* bias, bool relu, int64_t n);
  void (*epilogue_double)(double* row, const double* bias, bool relu, int64_t n);
  AddScaled add_scaled[kDtypes];  // bool and integers
  SortRows sort_rows[kDtypes];
  GemmLoops<float> gemm_float;
  GemmLoops<double> gemm_double;
  const char* isa;
};

// The tables of this processor, or of the level that CATENA_CPU_ISA allows ("v2", "v3", "v4").
const Tables& tables();
// The x86-64 level to use of those in `built` (ascending): the best that the processor has and that
// the wish ("v3") allows, else the lowest that the processor has; 0 if it has none.
int level_of_kernels(int processor, const char* wish, const std::vector<int>& built);

// Each loop file fills its part of the tables, in the namespace of its level. The build collects
// these blocks (src/cmake/catena_lists.cmake), and runtime/isa.cpp runs all:
//   CATENA_LOOPS(softmax) { tables.softmax_float = ...; }
#define CATENA_LOOPS(part) void fill_##part(Tables& tables)

}  // namespace catena::host
