// Loops of row normalization over numbers of 16 bits. See loop.h about linkage.
#include "backends/cpu/loops/half_normalization.h"

#include "backends/cpu/loops/finish_moments.h"
#include "backends/cpu/loops/half_lanes.h"

namespace catena::host {
namespace {

using Loops = HalfNormalizationLoops;

// Sums side by side, so that an addition need not wait for the one before it.
#ifdef __AVX512F__
constexpr int kChains = 4;
#else
constexpr int kChains = 2;
#endif

template <class S>
CATENA_FN const S* stored(const void* p) {
  return static_cast<const S*>(p);
}

// The sum of kChains vectors.
CATENA_FN float sum_of(const Floats (&chains)[kChains]) {
  Floats all = chains[0];
#pragma GCC unroll 4
  for (int k = 1; k < kChains; ++k) all += chains[k];
  float sums[kLanes];
  Simd<float>::store(sums, all);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}
// Calls f(at, chain) for at = 0, kLanes, ... below `whole`, a multiple of kLanes.
template <class F>
CATENA_FN void each_of_chains(int64_t whole, F f) {
  int64_t at = 0;
  for (; at + kChains * kLanes <= whole; at += kChains * kLanes)
#pragma GCC unroll 4
    for (int k = 0; k < kChains; ++k) f(at + k * kLanes, k);
  for (; at < whole; at += kLanes) f(at, 0);
}

// Rows of one channel ---------------------------------------------------------------------------

template <class S>
void moments_of_row(const void* from, int64_t rows, int64_t columns, const Loops::Moments& to) {
  const S* const x = stored<S>(from);
  const int64_t n = rows * columns, whole = n / kLanes * kLanes;
  Floats sums[kChains] = {}, d_sums[kChains] = {}, dd_sums[kChains] = {};
  each_of_chains(
      whole, [&](int64_t at, int k) __attribute__((always_inline)) { sums[k] += load(x + at); });
  float total = sum_of(sums);
  for (int64_t i = whole; i < n; ++i) total += widen(x[i]);
  const float shift = total / float(n);
  each_of_chains(
      whole, [&](int64_t at, int k) __attribute__((always_inline)) {
        const Floats d = load(x + at) - shift;
        d_sums[k] += d;
        dd_sums[k] += d * d;
      });
  float d_sum = sum_of(d_sums), dd_sum = sum_of(dd_sums);
  for (int64_t i = whole; i < n; ++i) {
    const float d = widen(x[i]) - shift;
    d_sum += d;
    dd_sum += d * d;
  }
  finish_moments(shift, d_sum, dd_sum, n, to, 0);
}

template <class S>
void sums_of_row(const Loops::Sums& s, int64_t rows, int64_t columns) {
  const S *const x = stored<S>(s.x), *const gy = stored<S>(s.gy);
  const int64_t n = rows * columns, whole = n / kLanes * kLanes;
  const float mean = *s.mean;
  Floats g_sums[kChains] = {}, gx_sums[kChains] = {};
  each_of_chains(
      whole, [&](int64_t at, int k) __attribute__((always_inline)) {
        const Floats g = load(gy + at);
        g_sums[k] += g;
        gx_sums[k] += g * (load(x + at) - mean);
      });
  float g_sum = sum_of(g_sums), gx_sum = sum_of(gx_sums);
  for (int64_t i = whole; i < n; ++i) {
    g_sum += widen(gy[i]);
    gx_sum += widen(gy[i]) * (widen(x[i]) - mean);
  }
  *s.g = double(g_sum);
  *s.gx = double(gx_sum);
}

// Columns that are channels ---------------------------------------------------------------------

// kGroups * kLanes columns at a time in registers, from column j on.
template <int kGroups, class S>
CATENA_FN void moments_of_lanes(const S* x, int64_t rows, int64_t columns, const Loops::Moments& to,
                                int64_t j) {
  Floats shift[kGroups] = {}, d_sums[kGroups] = {}, dd_sums[kGroups] = {};
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) shift[g] += load(x + j + r * columns + g * kLanes);
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) shift[g] /= float(rows);
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const Floats d = load(x + j + r * columns + g * kLanes) - shift[g];
      d_sums[g] += d;
      dd_sums[g] += d * d;
    }
  for (int g = 0; g < kGroups; ++g)
    for (int64_t i = 0; i < kLanes; ++i)
      finish_moments(float(shift[g][i]), float(d_sums[g][i]), float(dd_sums[g][i]), rows, to,
                     j + g * kLanes + i);
}
template <class S>
CATENA_FN void moments_of_column(const S* x, int64_t rows, int64_t columns,
                                 const Loops::Moments& to, int64_t j) {
  float total = 0, d_sum = 0, dd_sum = 0;
  for (int64_t r = 0; r < rows; ++r) total += widen(x[j + r * columns]);
  const float shift = total / float(rows);
  for (int64_t r = 0; r < rows; ++r) {
    const float d = widen(x[j + r * columns]) - shift;
    d_sum += d;
    dd_sum += d * d;
  }
  finish_moments(shift, d_sum, dd_sum, rows, to, j);
}
template <class S>
void moments_of_columns(const void* from, int64_t rows, int64_t columns, const Loops::Moments& to) {
  const S* const x = stored<S>(from);
  int64_t j = 0;
  for (; j + kChains * kLanes <= columns; j += kChains * kLanes)
    moments_of_lanes<kChains>(x, rows, columns, to, j);
  for (; j + kLanes <= columns; j += kLanes) moments_of_lanes<1>(x, rows, columns, to, j);
  for (; j < columns; ++j) moments_of_column(x, rows, columns, to, j);
}

template <int kGroups, class S>
CATENA_FN void sums_of_lanes(const Loops::Sums& s, int64_t rows, int64_t columns, int64_t j) {
  const S *x = stored<S>(s.x) + j, *gy = stored<S>(s.gy) + j;
  Floats mean[kGroups], g_sums[kGroups] = {}, gx_sums[kGroups] = {};
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) mean[g] = load(s.mean + j + g * kLanes);
  for (int64_t r = 0; r < rows; ++r, x += columns, gy += columns)
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const Floats v = load(gy + g * kLanes);
      g_sums[g] += v;
      gx_sums[g] += v * (load(x + g * kLanes) - mean[g]);
    }
  for (int g = 0; g < kGroups; ++g)
    for (int64_t i = 0; i < kLanes; ++i) {
      s.g[j + g * kLanes + i] = double(g_sums[g][i]);
      s.gx[j + g * kLanes + i] = double(gx_sums[g][i]);
    }
}
template <class S>
CATENA_FN void sums_of_column(const Loops::Sums& s, int64_t rows, int64_t columns, int64_t j) {
  const S *const x = stored<S>(s.x), *const gy = stored<S>(s.gy);
  float g_sum = 0, gx_sum = 0;
  for (int64_t at = j; at < rows * columns; at += columns) {
    g_sum += widen(gy[at]);
    gx_sum += widen(gy[at]) * (widen(x[at]) - s.mean[j]);
  }
  s.g[j] = double(g_sum);
  s.gx[j] = double(gx_sum);
}
template <class S>
void sums_of_columns(const Loops::Sums& s, int64_t rows, int64_t columns) {
  int64_t j = 0;
  for (; j + kChains * kLanes <= columns; j += kChains * kLanes)
    sums_of_lanes<kChains, S>(s, rows, columns, j);
  for (; j + kLanes <= columns; j += kLanes) sums_of_lanes<1, S>(s, rows, columns, j);
  for (; j < columns; ++j) sums_of_column<S>(s, rows, columns, j);
}

// Number by number ------------------------------------------------------------------------------

// A constant of the channels of a vector, or of one number: column j, or the only channel.
template <bool kColumns>
CATENA_FN Floats of_lanes(const float* constant, int64_t j) {
  return kColumns ? load(constant + j) : Simd<float>::all(*constant);
}
template <bool kColumns>
CATENA_FN float of_one(const float* constant, int64_t j) {
  return constant[kColumns ? j : 0];
}

template <bool kColumns, class S>
CATENA_FN void apply_row(const Loops::Apply& a, int64_t at, int64_t n) {
  const S* const x = stored<S>(a.x) + at;
  S* const y = static_cast<S*>(a.y) + at;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    store(y + j, (load(x + j) - of_lanes<kColumns>(a.mean, j)) * of_lanes<kColumns>(a.scale, j) +
                     of_lanes<kColumns>(a.shift, j));
  for (; j < n; ++j)
    y[j] =
        Narrow<S>::from((widen(x[j]) - of_one<kColumns>(a.mean, j)) * of_one<kColumns>(a.scale, j) +
                        of_one<kColumns>(a.shift, j));
}
template <bool kColumns, class S>
void apply(const Loops::Apply& a, int64_t rows, int64_t columns) {
  if (!kColumns) return apply_row<kColumns, S>(a, 0, rows * columns);
  for (int64_t r = 0; r < rows; ++r) apply_row<kColumns, S>(a, r * columns, columns);
}

template <bool kColumns, class S>
CATENA_FN void gradient_row(const Loops::Gradient& a, int64_t at, int64_t n) {
  const S *const x = stored<S>(a.x) + at, *const gy = stored<S>(a.gy) + at;
  S* const gx = static_cast<S*>(a.gx) + at;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    const Floats d = load(x + j) - of_lanes<kColumns>(a.mean, j);
    store(gx + j, of_lanes<kColumns>(a.of_g, j) * load(gy + j) +
                      (of_lanes<kColumns>(a.of_x, j) * d + of_lanes<kColumns>(a.constant, j)));
  }
  for (; j < n; ++j) {
    const float d = widen(x[j]) - of_one<kColumns>(a.mean, j);
    gx[j] = Narrow<S>::from(of_one<kColumns>(a.of_g, j) * widen(gy[j]) +
                            (of_one<kColumns>(a.of_x, j) * d + of_one<kColumns>(a.constant, j)));
  }
}
template <bool kColumns, class S>
void gradient(const Loops::Gradient& a, int64_t rows, int64_t columns) {
  if (!kColumns) return gradient_row<kColumns, S>(a, 0, rows * columns);
  for (int64_t r = 0; r < rows; ++r) gradient_row<kColumns, S>(a, r * columns, columns);
}

template <class S>
constexpr Loops half_normalization_loops() {
  return {{&moments_of_row<S>, &moments_of_columns<S>},
          {&apply<false, S>, &apply<true, S>},
          {&sums_of_row<S>, &sums_of_columns<S>},
          {&gradient<false, S>, &gradient<true, S>}};
}

}  // namespace

template <>
HalfNormalizationTables CATENA_ISA::make_loops() {
  return {half_normalization_loops<Half>(), half_normalization_loops<Brain>()};
}

}  // namespace catena::host
