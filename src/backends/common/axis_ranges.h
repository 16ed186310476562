// An axis of a resampling as its providers compute it, forward or transposed: which elements give
// an element, and with what weights. Plain C++ that g++ and nvcc compile.
#pragma once

#include <cstdint>

#include "catena/kernels/axis_map.h"

namespace catena {

// How the elements of a range are weighted.
enum class AxisWeights : uint8_t {
  kOne,     // a sum
  kMean,    // the sum is divided by their number
  kPart,    // each by the number of elements of the range that it is the mean of
  kLinear,  // by nearness
};

// Element o of [0, count) is made of the elements [begin, end) of [0, limit), where
//   begin = floor((o * scale + begin_shift) / divisor), end = floor((o * scale + end_shift) /
//   divisor),
// both moved into [0, limit].
struct AxisRanges {
  int64_t count, limit;
  int64_t scale, begin_shift, end_shift, divisor;
  bool transposed;
  AxisWeights weights;
  // kLinear: place(o) = o * slope + offset, moved into [0, (in - 1) * unit], in parts of `unit`.
  // Element i has the weight (unit - |place - i * unit|) / unit. Transposed: o and i are exchanged.
  // kPart: in `slope` the extent `in`, in `unit` the extent `out`.
  int64_t slope, offset, unit, in;
};

// Whether some of its weights may differ from 1.
inline bool is_weighted(const AxisRanges& r) {
  return r.weights == AxisWeights::kLinear || r.weights == AxisWeights::kPart;
}

namespace detail {

// scale, shifts and divisor of ranges that begin at floor(o * from / to) and end at the least
// number of which the next one's beginning is not below: of kBins, in both directions.
inline void set_bins(AxisRanges& r, int64_t from, int64_t to) {
  r.scale = from, r.divisor = to, r.begin_shift = 0, r.end_shift = from + to - 1;
}

inline void set_window(AxisRanges& r, const AxisMap& m, bool transposed) {
  if (!transposed) {
    r.scale = m.stride, r.divisor = 1, r.begin_shift = -m.pad, r.end_shift = m.kernel - m.pad;
  } else {
    r.scale = 1, r.divisor = m.stride;
    r.begin_shift = m.pad - m.kernel + m.stride, r.end_shift = m.pad + m.stride;
  }
}

inline void set_nearest(AxisRanges& r, const AxisMap& m, bool transposed) {
  if (!transposed)
    r.scale = m.in, r.divisor = m.out, r.begin_shift = 0, r.end_shift = m.out;
  else
    r.scale = m.out, r.divisor = m.in, r.begin_shift = m.in - 1, r.end_shift = m.out + m.in - 1;
}

inline void set_linear(AxisRanges& r, const AxisMap& m, bool transposed) {
  const bool aligned = m.rule == AxisRule::kAligned;
  r.slope = aligned ? m.in - 1 : 2 * m.in;
  r.offset = aligned ? 0 : m.in - m.out;
  r.unit = !aligned ? 2 * m.out : m.out > 1 ? m.out - 1 : 1;
  r.weights = AxisWeights::kLinear;
  if (!transposed) {
    r.scale = r.slope, r.divisor = r.unit;
    r.begin_shift = r.offset, r.end_shift = r.offset + 2 * r.unit - 1;
  } else if (r.slope == 0) {
    r.divisor = 1, r.end_shift = m.out;  // all places are that of the only element
  } else {
    r.scale = r.unit, r.divisor = r.slope;
    r.begin_shift = r.slope - r.unit - r.offset, r.end_shift = r.unit - r.offset + r.slope - 1;
  }
}

}  // namespace detail

inline AxisRanges axis_ranges(const AxisMap& m, bool transposed) {
  AxisRanges r{};
  r.count = transposed ? m.in : m.out, r.limit = transposed ? m.out : m.in;
  r.transposed = transposed, r.in = m.in, r.unit = 1;
  switch (m.rule) {
    case AxisRule::kWindow: detail::set_window(r, m, transposed); break;
    case AxisRule::kBins:
      detail::set_bins(r, r.limit, r.count);
      r.weights = transposed ? AxisWeights::kPart : AxisWeights::kMean;
      r.slope = m.in, r.unit = m.out;
      break;
    case AxisRule::kNearest: detail::set_nearest(r, m, transposed); break;
    default: detail::set_linear(r, m, transposed);
  }
  return r;
}

// The elements [begin, end).
template <class D>
struct AxisSpan {
  D begin, end;
};

}  // namespace catena
