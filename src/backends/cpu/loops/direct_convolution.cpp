// Loops of direct convolutions: over channels that are side by side, and over rows of planes.
// Internal linkage, as loop.h says.
#include "backends/cpu/loops/direct_convolution.h"

#include "backends/cpu/loops/simd.h"

#define CATENA_FN inline __attribute__((always_inline))

namespace catena::host {
namespace {

template <class C>
using Vector = typename Simd<C>::Vector;
template <class C>
constexpr int64_t kLanesOf = Simd<C>::kLanes;

// A vector, or with kPart its first n elements.
template <bool kPart, class C>
CATENA_FN Vector<C> load(const C* from, int64_t n) {
  if constexpr (kPart) return Simd<C>::load_part(from, n);
  return Simd<C>::load(from);
}
template <bool kPart, class C>
CATENA_FN void store(C* to, Vector<C> v, int64_t n) {
  if constexpr (kPart)
    Simd<C>::store_part(to, v, n);
  else
    Simd<C>::store(to, v);
}

CATENA_FN int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
CATENA_FN int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// [begin, end)
struct Range {
  int64_t begin, end;
};

// The results whose columns at the taps are all there.
CATENA_FN Range inner_results(const ConvolutionColumns& c, Range taps) {
  if (taps.begin == taps.end) return {0, c.count};
  const int64_t first = c.offset + taps.begin * c.jump;
  const int64_t room = c.width - 1 - c.offset - (taps.end - 1) * c.jump;
  const int64_t begin = first >= 0 ? 0 : smaller((-first + c.stride - 1) / c.stride, c.count);
  const int64_t end = room < 0 ? 0 : smaller(room / c.stride + 1, c.count);
  return {begin, larger(begin, end)};
}
// The taps at which the column of a result is there.
CATENA_FN Range seen_taps(const ConvolutionColumns& c, int64_t q) {
  const int64_t first = q * c.stride + c.offset, room = c.width - 1 - first;
  const int64_t begin = first >= 0 ? 0 : smaller((-first + c.jump - 1) / c.jump, c.taps);
  const int64_t end = room < 0 ? 0 : smaller(room / c.jump + 1, c.taps);
  return {begin, larger(begin, end)};
}

// Channels last --------------------------------------------------------------------------------

// What the sums of kCount results begin with.
template <int kCount, bool kPart, class C>
CATENA_FN void begin_sums(const ChannelSums<C>& s, int64_t q, int64_t c, int64_t n,
                          Vector<C> (&sums)[kCount]) {
  const Vector<C> bias = s.bias ? load<kPart>(s.bias + c, n) : Simd<C>::all(0);
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) {
    sums[p] = bias;
    if (s.accumulate) sums[p] = Simd<C>::add(bias, load<kPart>(s.to + (q + p) * s.to_step + c, n));
  }
}
template <int kCount, bool kPart, class C>
CATENA_FN void end_sums(const ChannelSums<C>& s, int64_t q, int64_t c, int64_t n,
                        const Vector<C> (&sums)[kCount]) {
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) store<kPart>(s.to + (q + p) * s.to_step + c, sums[p], n);
}

// kCount results from q on, at the taps of a range, in a vector of channels from c on.
template <int kCount, bool kPart, class C>
CATENA_FN void sums_of_lanes(const ChannelSums<C>& s, int64_t q, Range taps, int64_t c, int64_t n) {
  Vector<C> sums[kCount];
  begin_sums<kCount, kPart>(s, q, c, n, sums);
  const int64_t first = q * s.columns.stride + s.columns.offset + taps.begin * s.columns.jump;
  const int64_t step = s.columns.stride * s.channels, jump = s.columns.jump * s.channels;
  for (int64_t i = 0; i < s.rows; ++i) {
    const C* from = s.row[i] + first * s.channels + c;
    const C* weight = s.weights[i] + taps.begin * s.weight_step + c;
    for (int64_t t = taps.begin; t < taps.end; ++t, from += jump, weight += s.weight_step) {
      const Vector<C> w = load<kPart>(weight, n);
#pragma GCC unroll 8
      for (int p = 0; p < kCount; ++p)
        sums[p] = Simd<C>::fma(load<kPart>(from + p * step, n), w, sums[p]);
    }
  }
  end_sums<kCount, kPart>(s, q, c, n, sums);
}
// The same for kTaps adjacent columns and neighbouring results: each column is loaded once.
template <int kCount, int kTaps, bool kPart, class C>
CATENA_FN void sliding_sums(const ChannelSums<C>& s, int64_t q, int64_t c, int64_t n) {
  Vector<C> sums[kCount];
  begin_sums<kCount, kPart>(s, q, c, n, sums);
  for (int64_t i = 0; i < s.rows; ++i) {
    const C* const from = s.row[i] + (q + s.columns.offset) * s.channels + c;
    Vector<C> w[kTaps];
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) w[t] = load<kPart>(s.weights[i] + t * s.weight_step + c, n);
#pragma GCC unroll 16
    for (int column = 0; column < kCount + kTaps - 1; ++column) {
      const Vector<C> x = load<kPart>(from + column * s.channels, n);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t)
        if (column >= t && column - t < kCount)
          sums[column - t] = Simd<C>::fma(x, w[t], sums[column - t]);
    }
  }
  end_sums<kCount, kPart>(s, q, c, n, sums);
}

// kTaps: 0 where the columns are not adjacent, or are not three.
template <int kCount, int kTaps, bool kPart, class C>
CATENA_FN void sums_of_results(const ChannelSums<C>& s, int64_t q, Range taps, int64_t c,
                               int64_t n) {
  if constexpr (kTaps == 0)
    sums_of_lanes<kCount, kPart>(s, q, taps, c, n);
  else
    sliding_sums<kCount, kTaps, kPart>(s, q, c, n);
}
template <int kCount, int kTaps, class C>
void sums_of_channels(const ChannelSums<C>& s, int64_t q, Range taps) {
  constexpr int64_t kLanes = kLanesOf<C>;
  int64_t c = 0;
  for (; c + kLanes <= s.channels; c += kLanes)
    sums_of_results<kCount, kTaps, false>(s, q, taps, c, kLanes);
  if (c < s.channels) sums_of_results<kCount, kTaps, true>(s, q, taps, c, s.channels - c);
}

template <int kTaps, class C>
CATENA_FN void sums_of_row(const ChannelSums<C>& s) {
  const Range all{0, s.columns.taps}, inner = inner_results(s.columns, all);
  int64_t q = 0;
  for (; q < inner.begin; ++q) sums_of_channels<1, 0>(s, q, seen_taps(s.columns, q));
  for (; q + 8 <= inner.end; q += 8) sums_of_channels<8, kTaps>(s, q, all);
  if (q + 4 <= inner.end) sums_of_channels<4, kTaps>(s, q, all), q += 4;
  for (; q < inner.end; ++q) sums_of_channels<1, 0>(s, q, all);
  for (; q < s.columns.count; ++q) sums_of_channels<1, 0>(s, q, seen_taps(s.columns, q));
}
template <class C>
void channel_sums(const ChannelSums<C>& s) {
  const bool adjacent = s.columns.stride == 1 && s.columns.jump == 1 && s.columns.taps == 3;
  adjacent ? sums_of_row<3>(s) : sums_of_row<0>(s);
}

// What a sum runs over: results of [begin, end), of which those of `inner` have all columns; kRows
// rows from `row` on, and kTaps taps from `tap` on.
struct Products {
  Range results, inner;
  int64_t row, tap;
};
template <int kRows, int kTaps, bool kPart, class C>
CATENA_FN void products_of_lanes(const ChannelProducts<C>& p, const Products& of, int64_t c,
                                 int64_t n) {
  const int64_t row = of.row, tap = of.tap;
  const ConvolutionColumns& columns = p.columns;
  Vector<C> sums[kRows][kTaps];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) sums[r][t] = Simd<C>::all(0);
  const auto add = [&](int64_t q, auto is_there) __attribute__((always_inline)) {
    const Vector<C> gy = load<kPart>(p.gy + q * p.channels + c, n);
    const int64_t first = q * columns.stride + columns.offset + tap * columns.jump;
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      const int64_t column = first + t * columns.jump;
      if (!is_there(column)) continue;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        sums[r][t] =
            Simd<C>::fma(gy, load<kPart>(p.row[row + r] + column * p.channels + c, n), sums[r][t]);
    }
  };
  const auto some = [&](int64_t column) { return column >= 0 && column < columns.width; };
  const auto all = [](int64_t) { return true; };
  int64_t q = of.results.begin;
  for (; q < smaller(of.inner.begin, of.results.end); ++q) add(q, some);
  for (; q < smaller(of.inner.end, of.results.end); ++q) add(q, all);
  for (; q < of.results.end; ++q) add(q, some);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      C* const to = p.sums[row + r] + (tap + t) * p.sum_step + c;
      store<kPart>(to, Simd<C>::add(load<kPart>(to, n), sums[r][t]), n);
    }
}
// Few results at a time with all of their channels, so that memory is read in its order.
template <int kRows, int kTaps, class C>
void products_of_taps(const ChannelProducts<C>& p, int64_t row, int64_t tap) {
  constexpr int64_t kLanes = kLanesOf<C>, kResults = 16;
  const Range inner = inner_results(p.columns, {tap, tap + kTaps});
  for (int64_t q = 0; q < p.columns.count; q += kResults) {
    const Products of{{q, smaller(q + kResults, p.columns.count)}, inner, row, tap};
    int64_t c = 0;
    for (; c + kLanes <= p.channels; c += kLanes)
      products_of_lanes<kRows, kTaps, false>(p, of, c, kLanes);
    if (c < p.channels) products_of_lanes<kRows, kTaps, true>(p, of, c, p.channels - c);
  }
}
template <class C>
void channel_products(const ChannelProducts<C>& p) {
  if (p.rows == 3 && p.columns.taps == 3) return products_of_taps<3, 3>(p, 0, 0);
  for (int64_t i = 0; i < p.rows; ++i) {
    int64_t t = 0;
    for (; t + 5 <= p.columns.taps; t += 5) products_of_taps<1, 5>(p, i, t);
    for (; t + 3 <= p.columns.taps; t += 3) products_of_taps<1, 3>(p, i, t);
    for (; t < p.columns.taps; ++t) products_of_taps<1, 1>(p, i, t);
  }
}

// Channels first -------------------------------------------------------------------------------

// A vector of columns from x on, in kRows rows from `row` on.
template <int kRows, bool kPart, class C>
CATENA_FN void sums_of_columns(const PlaneSums<C>& s, int64_t row, int64_t x, int64_t n) {
  const int64_t from = row * s.from_pitch + x;
  C* const to = s.to + row * s.to_pitch + x;
  Vector<C> sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    sums[r] = Simd<C>::all(s.bias);
    if (s.accumulate) sums[r] = Simd<C>::add(sums[r], load<kPart>(to + r * s.to_pitch, n));
  }
  for (int64_t t = 0; t < s.taps; ++t) {
    const Vector<C> w = Simd<C>::all(s.weights[t]);
    const C* const source = s.from[t] + from;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r] = Simd<C>::fma(Simd<C>::load(source + r * s.from_pitch), w, sums[r]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) store<kPart>(to + r * s.to_pitch, sums[r], n);
}
template <int kRows, class C>
void sums_of_rows(const PlaneSums<C>& s, int64_t row) {
  constexpr int64_t kLanes = kLanesOf<C>;
  int64_t x = 0;
  for (; x + kLanes <= s.columns; x += kLanes) sums_of_columns<kRows, false>(s, row, x, kLanes);
  if (x < s.columns) sums_of_columns<kRows, true>(s, row, x, s.columns - x);
}
template <class C>
void plane_sums(const PlaneSums<C>& s) {
  int64_t row = 0;
  for (; row + 8 <= s.rows; row += 8) sums_of_rows<8>(s, row);
  if (row + 4 <= s.rows) sums_of_rows<4>(s, row), row += 4;
  if (row + 2 <= s.rows) sums_of_rows<2>(s, row), row += 2;
  if (row < s.rows) sums_of_rows<1>(s, row);
}

template <int kTaps, class C>
void products_of_plane(const PlaneProducts<C>& p, int64_t tap) {
  constexpr int64_t kLanes = kLanesOf<C>;
  Vector<C> sums[kTaps];
  const C* from[kTaps];
#pragma GCC unroll 16
  for (int t = 0; t < kTaps; ++t) {
    from[t] = p.from[tap + t];
    sums[t] = Simd<C>::load(p.sums + (tap + t) * kLanes);
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    const C* const gy = p.gy + r * p.gy_pitch;
    const int64_t row = r * p.from_pitch;
    int64_t x = 0;
    for (; x + kLanes <= p.columns; x += kLanes) {
      const Vector<C> y = Simd<C>::load(gy + x);
#pragma GCC unroll 16
      for (int t = 0; t < kTaps; ++t)
        sums[t] = Simd<C>::fma(y, Simd<C>::load(from[t] + row + x), sums[t]);
    }
    if (x == p.columns) continue;
    // Both are cut: what is behind the row of x may be infinite.
    const int64_t n = p.columns - x;
    const Vector<C> y = Simd<C>::load_part(gy + x, n);
#pragma GCC unroll 16
    for (int t = 0; t < kTaps; ++t)
      sums[t] = Simd<C>::fma(y, Simd<C>::load_part(from[t] + row + x, n), sums[t]);
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTaps; ++t) Simd<C>::store(p.sums + (tap + t) * kLanes, sums[t]);
}
template <class C>
void plane_products(const PlaneProducts<C>& p) {
  int64_t t = 0;
  for (; t + 9 <= p.taps; t += 9) products_of_plane<9>(p, t);
  for (; t + 4 <= p.taps; t += 4) products_of_plane<4>(p, t);
  for (; t < p.taps; ++t) products_of_plane<1>(p, t);
}

template <class C>
void add_lines(const C* from, int64_t from_step, C* to, int64_t to_step, int64_t lines, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<C>;
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  for (int64_t l = 0; l < lines; ++l, from += from_step, to += to_step) {
    for (int64_t i = 0; i < whole; i += kLanes)
      Simd<C>::store(to + i, Simd<C>::add(Simd<C>::load(to + i), Simd<C>::load(from + i)));
    if (rest == 0) continue;
    C* const end = to + whole;
    Simd<C>::store_part(
        end, Simd<C>::add(Simd<C>::load_part(end, rest), Simd<C>::load_part(from + whole, rest)),
        rest);
  }
}

#ifdef __AVX512F__
// to[2 * i] += from[i] for i < n <= 16. Nothing between or behind them is written.
CATENA_FN void add_with_gaps(const float* from, float* to, int64_t n) {
  const __m512 v = Simd<float>::load_part(from, n);
  const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  const uint64_t there = 0x55555555u & ((uint64_t(1) << (2 * n)) - 1);
  const auto first = __mmask16(there), second = __mmask16(there >> 16);
  const __m512 a = _mm512_maskz_permutexvar_ps(first, low, v);
  const __m512 b = _mm512_maskz_permutexvar_ps(second, high, v);
  _mm512_mask_storeu_ps(to, first, _mm512_add_ps(_mm512_maskz_loadu_ps(first, to), a));
  _mm512_mask_storeu_ps(to + 16, second, _mm512_add_ps(_mm512_maskz_loadu_ps(second, to + 16), b));
}
#endif
template <class C>
void add_apart(const C* from, C* to, int64_t step, int64_t n) {
#ifdef __AVX512F__
  if constexpr (sizeof(C) == 4)
    if (step == 2) {
      for (int64_t i = 0; i < n; i += 16) add_with_gaps(from + i, to + 2 * i, smaller(16, n - i));
      return;
    }
#endif
  for (int64_t i = 0; i < n; ++i) to[i * step] += from[i];
}

template <class C>
constexpr DirectConvolutionLoops<C> direct_convolution_loops() {
  return {&channel_sums<C>, &channel_products<C>, &plane_sums<C>, &plane_products<C>,
          &add_lines<C>,    &add_apart<C>,        kLanesOf<C>};
}

}  // namespace

template <>
DirectConvolutionTables CATENA_ISA::make_loops() {
  return {direct_convolution_loops<float>(), direct_convolution_loops<double>()};
}

}  // namespace catena::host
