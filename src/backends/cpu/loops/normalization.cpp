// Loops of batch normalization over pieces of one channel, and over pieces whose columns are
// channels. See loop.h about linkage.
#include "backends/cpu/loops/normalization.h"

#include "backends/cpu/loops/lanes.h"

namespace catena::host {
namespace {

template <class T>
using Vector = typename Lanes<T>::Vector;

// Sums of d = x - shift and of d * d over n numbers. If `shift` is near the mean, the first sum
// corrects the mean, and the second one stays accurate for a mean far from zero (corrected two-pass
// algorithm: T. Chan, G. Golub, R. LeVeque, Algorithms for computing the sample variance, 1983).
template <class T>
using MomentsOf = typename NormalizationLoops<T>::Moments;

template <class T>
CATENA_FN void finish_moments(T shift, T d, T dd, int64_t n, const MomentsOf<T>& to, int64_t at) {
  const double start = double(shift), step = double(d) / double(n);
  const double left = double(dd) - double(d) * step;
  // start + step, and what its rounding lost (D. Knuth's sum of two numbers).
  const double mean = start + step, added = mean - start;
  to.mean[at] = mean;
  to.rest[at] = (start - (mean - added)) + (step - added);
  to.squares[at] = left < 0 ? 0 : left;  // NaN stays
}

template <class T>
void moments_of_row(const T* x, int64_t rows, int64_t columns, const MomentsOf<T>& to) {
  const int64_t n = rows * columns, whole = n / kLanes * kLanes;
  const T shift = sum(x, n) / T(n);
  Vector<T> d_sums = {}, dd_sums = {};
  for (int64_t at = 0; at < whole; at += kLanes) {
    const Vector<T> d = load(x + at) - shift;
    d_sums += d;
    dd_sums += d * d;
  }
  T d_rest[kLanes], dd_rest[kLanes];
  for (int64_t i = 0; i < n - whole; ++i) {
    d_rest[i] = x[whole + i] - shift;
    dd_rest[i] = d_rest[i] * d_rest[i];
  }
  finish_moments(shift, join(d_sums, d_rest, n - whole), join(dd_sums, dd_rest, n - whole), n, to,
                 0);
}

// kLanes columns at a time in registers, from column j on.
template <class T>
CATENA_FN void moments_of_lanes(const T* x, int64_t rows, int64_t columns, const MomentsOf<T>& to,
                                int64_t j) {
  Vector<T> total = {}, d_sums = {}, dd_sums = {};
  for (int64_t r = 0; r < rows; ++r) total += load(x + j + r * columns);
  const Vector<T> shift = total / T(rows);
  for (int64_t r = 0; r < rows; ++r) {
    const Vector<T> d = load(x + j + r * columns) - shift;
    d_sums += d;
    dd_sums += d * d;
  }
  for (int64_t i = 0; i < kLanes; ++i)
    finish_moments(shift[i], d_sums[i], dd_sums[i], rows, to, j + i);
}
template <class T>
CATENA_FN void moments_of_column(const T* x, int64_t rows, int64_t columns, const MomentsOf<T>& to,
                                 int64_t j) {
  T total = 0, d_sum = 0, dd_sum = 0;
  for (int64_t r = 0; r < rows; ++r) total += x[j + r * columns];
  const T shift = total / T(rows);
  for (int64_t r = 0; r < rows; ++r) {
    const T d = x[j + r * columns] - shift;
    d_sum += d;
    dd_sum += d * d;
  }
  finish_moments(shift, d_sum, dd_sum, rows, to, j);
}
template <class T>
void moments_of_columns(const T* x, int64_t rows, int64_t columns, const MomentsOf<T>& to) {
  int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) moments_of_lanes(x, rows, columns, to, j);
  for (; j < columns; ++j) moments_of_column(x, rows, columns, to, j);
}

// The same, with the options as compile-time constants. `c` is the channel of element j of a row.
template <bool kColumns, bool kResidual, bool kRelu, class T>
CATENA_FN void apply_row(const typename NormalizationLoops<T>::Apply& a, int64_t at, int64_t n) {
  const T *x = a.x + at, *residual = kResidual ? a.residual + at : nullptr;
  const T *mean = a.mean, *scale = a.scale, *shift = a.shift;
  T* y = a.y + at;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const int64_t c = kColumns ? j : 0;
    T v = (x[j] - mean[c]) * scale[c] + shift[c];
    if (kResidual) v += residual[j];
    if (kRelu) v = v <= T(0) ? T(0) : v;
    y[j] = v;
  }
}
template <bool kColumns, bool kResidual, bool kRelu, class T>
void apply_rows(const typename NormalizationLoops<T>::Apply& a, int64_t rows, int64_t columns) {
  if (!kColumns) return apply_row<kColumns, kResidual, kRelu, T>(a, 0, rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    apply_row<kColumns, kResidual, kRelu, T>(a, r * columns, columns);
}
template <bool kColumns, class T>
void apply(const typename NormalizationLoops<T>::Apply& a, int64_t rows, int64_t columns) {
  if (a.residual != nullptr) {
    if (a.relu) return apply_rows<kColumns, true, true, T>(a, rows, columns);
    return apply_rows<kColumns, true, false, T>(a, rows, columns);
  }
  if (a.relu) return apply_rows<kColumns, false, true, T>(a, rows, columns);
  return apply_rows<kColumns, false, false, T>(a, rows, columns);
}

// The gradient of the normalization's output, taken back through the relu.
template <bool kMask, class T>
CATENA_FN T masked(T gy, const T* y, int64_t j) {
  return !kMask || y[j] > T(0) ? gy : T(0);
}
template <bool kMask, class T>
CATENA_FN Vector<T> masked_lanes(const T* gy, const T* y) {
  const Vector<T> g = load(gy);
  if constexpr (kMask)
    return load(y) > T(0) ? g : Vector<T>{};
  else
    return g;
}

template <bool kMask, class T>
void sums_of_row(const typename NormalizationLoops<T>::Sums& s, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  const T mean = *s.mean;
  Vector<T> g_sums = {}, gx_sums = {};
  for (int64_t at = 0; at < whole; at += kLanes) {
    const Vector<T> g = masked_lanes<kMask>(s.gy + at, s.y + at);
    g_sums += g;
    gx_sums += g * (load(s.x + at) - mean);
  }
  T g_rest[kLanes], gx_rest[kLanes];
  for (int64_t i = 0; i < n - whole; ++i) {
    g_rest[i] = masked<kMask>(s.gy[whole + i], s.y, whole + i);
    gx_rest[i] = g_rest[i] * (s.x[whole + i] - mean);
  }
  *s.g = double(join(g_sums, g_rest, n - whole));
  *s.gx = double(join(gx_sums, gx_rest, n - whole));
}

template <bool kMask, class T>
CATENA_FN void sums_of_lanes(const typename NormalizationLoops<T>::Sums& s, int64_t j, int64_t rows,
                             int64_t columns) {
  const Vector<T> mean = load(s.mean + j);
  Vector<T> g_sums = {}, gx_sums = {};
  for (int64_t at = j; at < rows * columns; at += columns) {
    const Vector<T> g = masked_lanes<kMask>(s.gy + at, s.y + at);
    g_sums += g;
    gx_sums += g * (load(s.x + at) - mean);
  }
  for (int64_t i = 0; i < kLanes; ++i) {
    s.g[j + i] = double(g_sums[i]);
    s.gx[j + i] = double(gx_sums[i]);
  }
}
template <bool kMask, class T>
CATENA_FN void sums_of_column(const typename NormalizationLoops<T>::Sums& s, int64_t j,
                              int64_t rows, int64_t columns) {
  T g_sum = 0, gx_sum = 0;
  for (int64_t at = j; at < rows * columns; at += columns) {
    const T g = masked<kMask>(s.gy[at], s.y, at);
    g_sum += g;
    gx_sum += g * (s.x[at] - s.mean[j]);
  }
  s.g[j] = double(g_sum);
  s.gx[j] = double(gx_sum);
}
template <bool kMask, class T>
void sums_of_columns(const typename NormalizationLoops<T>::Sums& s, int64_t rows, int64_t columns) {
  int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) sums_of_lanes<kMask, T>(s, j, rows, columns);
  for (; j < columns; ++j) sums_of_column<kMask, T>(s, j, rows, columns);
}

template <bool kColumns, class T>
void sums(const typename NormalizationLoops<T>::Sums& s, int64_t rows, int64_t columns) {
  if constexpr (kColumns)
    s.y ? sums_of_columns<true, T>(s, rows, columns) : sums_of_columns<false, T>(s, rows, columns);
  else
    s.y ? sums_of_row<true, T>(s, rows * columns) : sums_of_row<false, T>(s, rows * columns);
}

template <bool kColumns, bool kMask, bool kKeep, class T>
CATENA_FN void gradient_row(const typename NormalizationLoops<T>::Gradient& a, int64_t at,
                            int64_t n) {
  const T *x = a.x + at, *gy = a.gy + at, *y = kMask ? a.y + at : nullptr;
  const T *mean = a.mean, *of_g = a.of_g, *of_x = a.of_x, *constant = a.constant;
  T *gx = a.gx + at, *keep = kKeep ? a.masked + at : nullptr;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const int64_t c = kColumns ? j : 0;
    const T g = masked<kMask>(gy[j], y, j);
    if (kKeep) keep[j] = g;
    gx[j] = of_g[c] * g + (of_x[c] * (x[j] - mean[c]) + constant[c]);
  }
}
template <bool kColumns, bool kMask, bool kKeep, class T>
void gradient_rows(const typename NormalizationLoops<T>::Gradient& a, int64_t rows,
                   int64_t columns) {
  if (!kColumns) return gradient_row<kColumns, kMask, kKeep, T>(a, 0, rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    gradient_row<kColumns, kMask, kKeep, T>(a, r * columns, columns);
}
template <bool kColumns, class T>
void gradient(const typename NormalizationLoops<T>::Gradient& a, int64_t rows, int64_t columns) {
  if (a.y != nullptr) {
    if (a.masked) return gradient_rows<kColumns, true, true, T>(a, rows, columns);
    return gradient_rows<kColumns, true, false, T>(a, rows, columns);
  }
  if (a.masked) return gradient_rows<kColumns, false, true, T>(a, rows, columns);
  return gradient_rows<kColumns, false, false, T>(a, rows, columns);
}

template <class T>
constexpr NormalizationLoops<T> normalization_loops() {
  return {{&moments_of_row<T>, &moments_of_columns<T>},
          {&apply<false, T>, &apply<true, T>},
          {&sums<false, T>, &sums<true, T>},
          {&gradient<false, T>, &gradient<true, T>}};
}

}  // namespace

namespace CATENA_ISA {

void fill_normalization(NormalizationTables& tables) {
  tables.of_float = normalization_loops<float>();
  tables.of_double = normalization_loops<double>();
}

}  // namespace CATENA_ISA

}  // namespace catena::host
