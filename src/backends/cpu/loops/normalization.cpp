// Loops of batch normalization over pieces of one channel, and over pieces whose columns are
// channels. See loop.h about linkage.
#include "backends/cpu/loops/normalization.h"

#include "backends/cpu/loops/finish_moments.h"
#include "backends/cpu/loops/lanes.h"

namespace catena::host {
namespace {

template <class T>
using Vector = typename Lanes<T>::Vector;

template <class T>
using MomentsOf = typename NormalizationLoops<T>::Moments;

template <class T>
void moments_of_row(const T* x, int64_t rows, int64_t columns, const MomentsOf<T>& to) {
  const int64_t n = rows * columns, whole = n / kLanes * kLanes;
  const T shift = sum(x, n) / T(n);
  Vector<T> sums[2];
  add_lanes<T>(
      whole, sums, [&](int64_t at, auto& to) __attribute__((always_inline)) {
        const Vector<T> d = load(x + at) - shift;
        to[0] += d;
        to[1] += d * d;
      });
  T d_rest[kLanes], dd_rest[kLanes];
  for (int64_t i = 0; i < n - whole; ++i) {
    d_rest[i] = x[whole + i] - shift;
    dd_rest[i] = d_rest[i] * d_rest[i];
  }
  finish_moments(shift, join(sums[0], d_rest, n - whole), join(sums[1], dd_rest, n - whole), n, to,
                 0);
}

// kGroups * kLanes columns at a time in registers, from column j on.
template <int kGroups, class T>
CATENA_FN void moments_of_lanes(const T* x, int64_t rows, int64_t columns, const MomentsOf<T>& to,
                                int64_t j) {
  Vector<T> shift[kGroups] = {}, d_sums[kGroups] = {}, dd_sums[kGroups] = {};
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) shift[g] += load(x + j + r * columns + g * kLanes);
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) shift[g] /= T(rows);
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const Vector<T> d = load(x + j + r * columns + g * kLanes) - shift[g];
      d_sums[g] += d;
      dd_sums[g] += d * d;
    }
  // Through arrays of their own, so that the results are computed in vectors.
  double mean[kGroups * kLanes], rest[kGroups * kLanes], squares[kGroups * kLanes];
  for (int g = 0; g < kGroups; ++g)
    for (int64_t i = 0; i < kLanes; ++i)
      finish_moments(T(shift[g][i]), T(d_sums[g][i]), T(dd_sums[g][i]), rows,
                     MomentsOf<T>{mean, rest, squares}, g * kLanes + i);
  for (int64_t i = 0; i < kGroups * kLanes; ++i) {
    to.mean[j + i] = mean[i];
    to.rest[j + i] = rest[i];
    to.squares[j + i] = squares[i];
  }
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
  constexpr int kGroups = sizeof(T) == 4 ? kChains : kChains / 2;
  int64_t j = 0;
  for (; j + kGroups * kLanes <= columns; j += kGroups * kLanes)
    moments_of_lanes<kGroups>(x, rows, columns, to, j);
  for (; j + kLanes <= columns; j += kLanes) moments_of_lanes<1>(x, rows, columns, to, j);
  for (; j < columns; ++j) moments_of_column(x, rows, columns, to, j);
}

// As Moments::merge of normalization/moments.h, of channels side by side.
template <class T>
void merge(const MomentsOf<T>& to, double n_to, const MomentsOf<T>& from, double n_from,
           int64_t channels) {
  const double share = n_from / (n_to + n_from), both = n_to * share;
#pragma GCC ivdep
  for (int64_t c = 0; c < channels; ++c) {
    const double delta = (from.mean[c] - to.mean[c]) + (from.rest[c] - to.rest[c]);
    const double step = to.rest[c] + delta * share;
    const double mean = to.mean[c] + step, added = mean - to.mean[c];
    to.squares[c] += from.squares[c] + delta * delta * both;
    to.rest[c] = (to.mean[c] - (mean - added)) + (step - added);
    to.mean[c] = mean;
  }
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
  Vector<T> sums[2];
  add_lanes<T>(
      whole, sums, [&](int64_t at, auto& to) __attribute__((always_inline)) {
        const Vector<T> g = masked_lanes<kMask>(s.gy + at, s.y + at);
        to[0] += g;
        to[1] += g * (load(s.x + at) - mean);
      });
  T g_rest[kLanes], gx_rest[kLanes];
  for (int64_t i = 0; i < n - whole; ++i) {
    g_rest[i] = masked<kMask>(s.gy[whole + i], s.y, whole + i);
    gx_rest[i] = g_rest[i] * (s.x[whole + i] - mean);
  }
  *s.g = double(join(sums[0], g_rest, n - whole));
  *s.gx = double(join(sums[1], gx_rest, n - whole));
}

template <int kGroups, bool kMask, class T>
CATENA_FN void sums_of_groups(const typename NormalizationLoops<T>::Sums& s, int64_t j,
                              int64_t rows, int64_t columns) {
  Vector<T> mean[kGroups], g_sums[kGroups] = {}, gx_sums[kGroups] = {};
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) mean[g] = load(s.mean + j + g * kLanes);
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const int64_t at = j + r * columns + g * kLanes;
      const Vector<T> v = masked_lanes<kMask>(s.gy + at, s.y + at);
      g_sums[g] += v;
      gx_sums[g] += v * (load(s.x + at) - mean[g]);
    }
  for (int g = 0; g < kGroups; ++g)
    for (int64_t i = 0; i < kLanes; ++i) {
      s.g[j + g * kLanes + i] = double(g_sums[g][i]);
      s.gx[j + g * kLanes + i] = double(gx_sums[g][i]);
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
  constexpr int kGroups = sizeof(T) == 4 ? kChains : kChains / 2;
  int64_t j = 0;
  for (; j + kGroups * kLanes <= columns; j += kGroups * kLanes)
    sums_of_groups<kGroups, kMask, T>(s, j, rows, columns);
  for (; j + kLanes <= columns; j += kLanes) sums_of_groups<1, kMask, T>(s, j, rows, columns);
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
          &merge<T>,
          {&apply<false, T>, &apply<true, T>},
          {&sums<false, T>, &sums<true, T>},
          {&gradient<false, T>, &gradient<true, T>}};
}

}  // namespace

template <>
NormalizationTables CATENA_ISA::make_loops() {
  return {normalization_loops<float>(), normalization_loops<double>()};
}

}  // namespace catena::host
