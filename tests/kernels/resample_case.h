// Resamplings of many kinds, and their definition: products with dense matrices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "catena/core/shape.h"
#include "catena/kernels/axis_map.h"

namespace catena::testing {

struct ResampleCase {
  int64_t images = 2, channels = 3;
  AxisMap rows, columns;
  double divisor = 1;
  bool adjoint = false, last = false, accumulate = false;

  Shape in() const {
    return {images, channels, adjoint ? rows.out : rows.in, adjoint ? columns.out : columns.in};
  }
  Shape out() const {
    return {images, channels, adjoint ? rows.in : rows.out, adjoint ? columns.in : columns.out};
  }
  std::string text() const {
    std::ostringstream s;
    s << images << " x " << channels << (last ? " channels last" : "") << ", rule "
      << int(rows.rule) << (adjoint ? ", adjoint" : "") << (accumulate ? ", accumulate" : "")
      << ", divisor " << divisor;
    for (const AxisMap& m : {rows, columns})
      s << ", " << m.in << " to " << m.out << ": kernel " << m.kernel << " stride " << m.stride
        << " pad " << m.pad;
    return s.str();
  }
};

// Of element i in the sum for element o, as catena/kernels/axis_map.h says.
inline double weight_in(const AxisMap& m, int64_t o, int64_t i) {
  const double in = double(m.in), out = double(m.out);
  if (m.rule == AxisRule::kWindow) {
    const int64_t tap = i - (o * m.stride - m.pad);
    return tap >= 0 && tap < m.kernel ? 1 : 0;
  }
  if (m.rule == AxisRule::kNearest) return i == o * m.in / m.out ? 1 : 0;
  if (m.rule == AxisRule::kBins) {
    // PyTorch's start and end.
    const int64_t start = o * m.in / m.out,
                  end = (o + 1) * m.in / m.out + ((o + 1) * m.in % m.out != 0);
    return i >= start && i < end ? 1 / double(end - start) : 0;
  }
  double place = 0;
  if (m.rule == AxisRule::kAligned)
    place = m.out > 1 ? double(o) * (in - 1) / (out - 1) : 0;
  else
    place = std::clamp((double(o) + 0.5) * in / out - 0.5, 0.0, in - 1);
  return std::max(0.0, 1 - std::abs(place - double(i)));
}

// The elements that have a weight in the sum for each element, and their weights.
struct Weighted {
  int64_t element;
  double weight;
};
inline std::vector<std::vector<Weighted>> sums_of(const AxisMap& m, bool adjoint) {
  std::vector<std::vector<Weighted>> sums(size_t(adjoint ? m.in : m.out));
  for (int64_t o = 0; o < m.out; ++o)
    for (int64_t i = 0; i < m.in; ++i) {
      const double weight = weight_in(m, o, i);
      if (weight != 0) sums[size_t(adjoint ? i : o)].push_back({adjoint ? o : i, weight});
    }
  return sums;
}

// y, and the sum of the sizes of what is added, by which errors are measured.
struct Resampled {
  std::vector<double> y, size;
};
inline Resampled resampled(const ResampleCase& c, const std::vector<double>& x) {
  const Shape in = c.in();
  const auto rows = sums_of(c.rows, c.adjoint), columns = sums_of(c.columns, c.adjoint);
  Resampled r;
  for (int64_t plane = 0; plane < c.images * c.channels; ++plane)
    for (const auto& row : rows)
      for (const auto& column : columns) {
        double sum = 0, size = 0;
        for (const Weighted& h : row)
          for (const Weighted& w : column) {
            const double v = h.weight * w.weight / c.divisor *
                             x[size_t((plane * in[2] + h.element) * in[3] + w.element)];
            sum += v, size += std::abs(v);
          }
        r.y.push_back(sum), r.size.push_back(size);
      }
  return r;
}

// y in float32, its sums made in the order that catena/kernels/resample.h promises; of
// rules without weights, and means of bins.
inline std::vector<float> summed_in_order(const ResampleCase& c, const std::vector<float>& x) {
  const Shape in = c.in();
  const auto rows = sums_of(c.rows, c.adjoint), columns = sums_of(c.columns, c.adjoint);
  std::vector<float> y;
  for (int64_t plane = 0; plane < c.images * c.channels; ++plane)
    for (const auto& row : rows)
      for (const auto& column : columns) {
        const bool by_rows = c.last && column.size() >= 4;
        const auto &outer = by_rows ? row : column, &inner = by_rows ? column : row;
        float sum = 0;
        for (const Weighted& o : outer) {
          float part = 0;
          for (const Weighted& i : inner) {
            const int64_t h = (by_rows ? o : i).element, w = (by_rows ? i : o).element;
            part += x[size_t((plane * in[2] + h) * in[3] + w)];
          }
          sum += part;
        }
        const bool mean = c.rows.rule == AxisRule::kBins;
        y.push_back(sum / float(c.divisor * double(mean ? row.size() * column.size() : 1)));
      }
  return y;
}

// Sums of three to five columns: of windows in both directions, of bins, and of repeated elements.
inline std::vector<ResampleCase> wide_windows() {
  std::vector<ResampleCase> all;
  for (const int64_t columns : {3, 4, 5})
    for (const bool last : {false, true})
      for (const int64_t channels : {5, 24}) {
        ResampleCase c;
        c.channels = channels, c.last = last, c.divisor = double(5 * columns);
        c.rows = {AxisRule::kWindow, 11, 9, 5, 1, 1};
        c.columns = {AxisRule::kWindow, 13, 13 - columns + 3, columns, 1, 1};
        for (const bool adjoint : {false, true}) {
          c.adjoint = adjoint;
          all.push_back(c);
        }
        c.divisor = 1, c.adjoint = false;
        c.rows = {AxisRule::kBins, 11, 3}, c.columns = {AxisRule::kBins, 3 * columns - 1, 3};
        all.push_back(c);
        c.adjoint = true;
        c.rows = {AxisRule::kNearest, 3, 11}, c.columns = {AxisRule::kNearest, 3, 3 * columns};
        all.push_back(c);
      }
  return all;
}

inline ResampleCase random_resampling(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  ResampleCase c;
  c.images = pick(1, 3);
  const int64_t channels[] = {1, 3, 16, 37, 72};
  c.channels = channels[pick(0, 4)];
  const auto rule = AxisRule(pick(0, 4));
  for (AxisMap* m : {&c.rows, &c.columns}) {
    *m = {rule, pick(1, 23), pick(1, 23)};
    if (rule != AxisRule::kWindow) continue;
    m->kernel = pick(1, 5), m->stride = pick(1, 4), m->pad = pick(0, 5);
    // Sometimes positions that see nothing, as unpooling has them.
    const int64_t most = (m->in + 2 * m->pad) / m->stride + 1;
    m->out = pick(1, most);
  }
  c.divisor =
      rule == AxisRule::kWindow && pick(0, 1) ? double(c.rows.kernel * c.columns.kernel) : 1;
  c.adjoint = pick(0, 1), c.last = pick(0, 1), c.accumulate = pick(0, 1);
  return c;
}

// Strides that need 64 bits.
inline std::vector<ResampleCase> far_resamplings() {
  std::vector<ResampleCase> all;
  for (const bool adjoint : {false, true})
    for (const bool last : {false, true}) {
      ResampleCase c;
      c.channels = 16, c.adjoint = adjoint, c.last = last, c.divisor = 6;
      c.rows = {AxisRule::kWindow, 5, 2, 3, int64_t{1} << 40, 1};
      c.columns = {AxisRule::kWindow, 7, 3, 2, 3, 1};
      all.push_back(c);
    }
  return all;
}

}  // namespace catena::testing
