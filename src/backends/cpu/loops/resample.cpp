// Loops of resampling: over channels that are side by side, and over rows. Internal linkage, as
// loop.h says.
#include "backends/cpu/loops/resample.h"

#include "backends/cpu/loops/pooling_lanes.h"

namespace catena::host {
namespace {

// Channels last ----------------------------------------------------------------------------------

// Wide windows without weights are read row by row, as they are in memory, and all others column by
// column: the order that the slot promises.
CATENA_FN bool is_read_by_rows(const ResampleLoops::Position& p) {
  return p.count[1] >= 4 && p.weights[0] == nullptr;
}

// The sums of kGroups * kLanes channels of a position that is read by rows.
template <int kGroups, class T>
CATENA_FN void add_by_rows(const ResampleLoops::Position& p, const T* x,
                           Values<T> (&total)[kGroups]) {
  for (int64_t i = 0; i < p.count[0]; ++i) {
    const T* at = x + i * p.step[0];
    Values<T> row[kGroups] = {};
    for (int64_t j = 0; j < p.count[1]; ++j, at += p.step[1])
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) row[g] += load(at + g * kLanes);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) total[g] += row[g];
  }
}

// kGroups * kLanes channels of a position.
template <int kGroups, bool kWeighted, class T>
CATENA_FN void sum_of_lanes(const ResampleLoops::Position& p, int64_t from) {
  using C = Computed<T>;
  const C* const heights = static_cast<const C*>(p.weights[0]);
  const C* const widths = static_cast<const C*>(p.weights[1]);
  const T* const x = static_cast<const T*>(p.x) + from;
  Values<T> total[kGroups] = {};
  const bool by_rows = !kWeighted && is_read_by_rows(p);
  if (by_rows) add_by_rows<kGroups, T>(p, x, total);
  for (int64_t j = 0; j < (by_rows ? 0 : p.count[1]); ++j) {
    const T* at = x + j * p.step[1];
    Values<T> column[kGroups] = {};
    for (int64_t i = 0; i < p.count[0]; ++i, at += p.step[0])
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g)
        column[g] += kWeighted ? load(at + g * kLanes) * heights[i] : load(at + g * kLanes);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) total[g] += kWeighted ? column[g] * widths[j] : column[g];
  }
  T* const y = static_cast<T*>(p.y) + from;
  const C divisor = C(p.divisor);
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    const Values<T> sum = divisor == 1 ? total[g] : total[g] / divisor;
    store(y + g * kLanes, p.accumulate ? load(y + g * kLanes) + sum : sum);
  }
}
template <bool kWeighted, class T>
CATENA_FN void sum_of_channel(const ResampleLoops::Position& p, int64_t channel) {
  using C = Computed<T>;
  const C* const heights = static_cast<const C*>(p.weights[0]);
  const C* const widths = static_cast<const C*>(p.weights[1]);
  const T* const x = static_cast<const T*>(p.x) + channel;
  const int inner = !kWeighted && is_read_by_rows(p), outer = 1 - inner;
  C total = 0;
  for (int64_t j = 0; j < p.count[outer]; ++j) {
    C column = 0;
    for (int64_t i = 0; i < p.count[inner]; ++i) {
      const C v = widen(x[i * p.step[inner] + j * p.step[outer]]);
      column += kWeighted ? v * heights[i] : v;
    }
    total += kWeighted ? column * widths[j] : column;
  }
  const C divisor = C(p.divisor), sum = divisor == 1 ? total : total / divisor;
  T& y = static_cast<T*>(p.y)[channel];
  y = Narrow<T>::from(p.accumulate ? widen(y) + sum : sum);
}
template <bool kWeighted, class T>
CATENA_FN void sum_of_channels(const ResampleLoops::Position& p) {
  constexpr int kGroups = sizeof(T) == 8 ? 2 : 4;
  int64_t at = 0;
  for (; at + kGroups * kLanes <= p.channels; at += kGroups * kLanes)
    sum_of_lanes<kGroups, kWeighted, T>(p, at);
  for (; at + kLanes <= p.channels; at += kLanes) sum_of_lanes<1, kWeighted, T>(p, at);
  for (; at < p.channels; ++at) sum_of_channel<kWeighted, T>(p, at);
}
template <class T>
void sum_of_position(const ResampleLoops::Position& p) {
  p.weights[0] ? sum_of_channels<true, T>(p) : sum_of_channels<false, T>(p);
}

// Channels first ---------------------------------------------------------------------------------

template <class T>
CATENA_FN void add_rows(const ResampleLoops::Row& r) {
  using C = Computed<T>;
  const T* const x = static_cast<const T*>(r.x);
  const C* const weights = static_cast<const C*>(r.row_weights);
  C* const sums = static_cast<C*>(r.sums);
  int64_t at = 0;
  for (; at + kLanes <= r.width; at += kLanes) {
    Values<T> sum = {};
    for (int64_t i = 0; i < r.rows; ++i) {
      const Values<T> v = load(x + i * r.width + at);
      sum += weights ? v * weights[i] : v;
    }
    store(sums + at, sum);
  }
  for (; at < r.width; ++at) {
    C sum = 0;
    for (int64_t i = 0; i < r.rows; ++i) {
      const C v = widen(x[i * r.width + at]);
      sum += weights ? v * weights[i] : v;
    }
    sums[at] = sum;
  }
}

template <class T>
CATENA_FN void give(const ResampleLoops::Row& r, int64_t position, Computed<T> sum,
                    Computed<T> divisor) {
  using C = Computed<T>;
  const C mean = divisor == 1 ? sum : sum / divisor;
  T& y = static_cast<T*>(r.y)[position];
  y = Narrow<T>::from(r.accumulate ? widen(y) + mean : mean);
}

template <class T>
CATENA_FN void add_columns(const ResampleLoops::Row& r, int64_t from, int64_t to) {
  using C = Computed<T>;
  const C* const sums = static_cast<const C*>(r.sums);
  const C* const weights = static_cast<const C*>(r.column_weights);
  for (int64_t i = from; i < to; ++i) {
    const int64_t begin = r.begin[i], end = r.end[i];
    C sum = 0;
    if (weights)
      for (int64_t j = begin; j < end; ++j) sum += sums[j] * weights[r.first[i] + j - begin];
    else
      for (int64_t j = begin; j < end; ++j) sum += sums[j];
    give<T>(r, i, sum, C(r.mean ? r.divisor * double(end - begin) : r.divisor));
  }
}

template <class C>
CATENA_FN typename Wide<C>::Values gathered(const C* from, const int32_t* places) {
#ifdef CATENA_WIDE_CONVERSIONS
  if constexpr (sizeof(C) == 4) return _mm512_i32gather_ps(_mm512_loadu_si512(places), from, 4);
#endif
  C lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = from[places[i]];
  return load(lanes);
}
template <class T>
CATENA_FN void add_taps(const ResampleLoops::Row& r) {
  using C = Computed<T>;
  C* const sums = static_cast<C*>(r.sums);
  sums[r.width] = 0;  // where there is no column
  const C* const weights = static_cast<const C*>(r.tap_weights);
  const C* const counts = static_cast<const C*>(r.counts);
  const C divisor = C(r.divisor);
  T* const y = static_cast<T*>(r.y);
  for (int64_t at = 0; at < r.positions; at += kLanes) {
    Values<T> sum = {};
    for (int64_t t = at; t < at + r.taps * r.tap_step; t += r.tap_step) {
      const Values<T> v = gathered(sums, r.tap_columns + t);
      sum += weights ? v * load(weights + t) : v;
    }
    if (counts)
      sum /= load(counts + at) * divisor;
    else if (divisor != 1)
      sum /= divisor;
    if (at + kLanes <= r.positions) {
      store(y + at, r.accumulate ? load(y + at) + sum : sum);
      continue;
    }
    C rest[kLanes];
    store(rest, sum);
    for (int64_t i = at; i < r.positions; ++i)
      y[i] = Narrow<T>::from(r.accumulate ? widen(y[i]) + rest[i - at] : rest[i - at]);
  }
}

// kKernel columns, kStride apart, of the positions that see all of them.
template <int kKernel, int kStride, class T>
CATENA_FN void add_whole(const ResampleLoops::Row& r) {
  using C = Computed<T>;
  const C* const sums = static_cast<const C*>(r.sums) - r.pad;
  const C divisor = C(r.divisor);
  for (int64_t i = r.whole[0]; i < r.whole[1]; ++i) {
    C sum = 0;
    for (int j = 0; j < kKernel; ++j) sum += sums[i * kStride + j];
    give<T>(r, i, sum, divisor);
  }
}

template <class T>
void sum_of_row(const ResampleLoops::Row& r) {
  add_rows<T>(r);
  const auto is = [&](int64_t kernel, int64_t stride) {
    return r.kernel == kernel && r.stride == stride;
  };
  const bool known = is(2, 2) || is(3, 1) || is(3, 2);
  if (!known || r.whole[0] >= r.whole[1])
    return r.taps > 0 ? add_taps<T>(r) : add_columns<T>(r, 0, r.positions);
  add_columns<T>(r, 0, r.whole[0]);
  if (is(2, 2)) add_whole<2, 2, T>(r);
  if (is(3, 1)) add_whole<3, 1, T>(r);
  if (is(3, 2)) add_whole<3, 2, T>(r);
  add_columns<T>(r, r.whole[1], r.positions);
}

// Planes -----------------------------------------------------------------------------------------

// Whole vectors, of which the last overlaps the one before it.
template <class T>
CATENA_FN void repeat(T value, T* y, int64_t n) {
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) y[i] = value;
    return;
  }
  T lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = value;
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) __builtin_memcpy(y + i, lanes, sizeof lanes);
  __builtin_memcpy(y + n - kLanes, lanes, sizeof lanes);
}

template <class T>
void spread_to_planes(const ResampleLoops::Planes& p) {
  using C = Computed<T>;
  const T* const x = static_cast<const T*>(p.x);
  T* y = static_cast<T*>(p.y);
  const C divisor = C(p.divisor);
  for (int64_t plane = 0; plane < p.planes; ++plane, y += p.n) {
    const C value = divisor == 1 ? widen(x[plane]) : widen(x[plane]) / divisor;
    if (p.accumulate)
      for (int64_t i = 0; i < p.n; ++i) y[i] = Narrow<T>::from(widen(y[i]) + value);
    else
      repeat(Narrow<T>::from(value), y, p.n);
  }
}

template <class T>
constexpr ResampleLoops resample_loops() {
  return {&sum_of_position<T>, &sum_of_row<T>, &spread_to_planes<T>};
}

}  // namespace

template <>
ResampleTables CATENA_ISA::make_loops() {
  return {resample_loops<Half>(), resample_loops<Brain>(), resample_loops<float>(),
          resample_loops<double>()};
}

}  // namespace catena::host
