// Resampling on the CPU: the ranges and weights of both axes are tables, made once for a call. See
// catena/kernels/resample.h.
#include "catena/kernels/resample.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/common/axis_ranges.h"
#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/resample.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/core/dtype_info.h"

namespace catena::host {
namespace {

int64_t quotient(int64_t n, int64_t divisor, int64_t limit) {
  return n < 0 ? 0 : std::min(n / divisor, limit);
}
AxisSpan<int64_t> span_of(const AxisRanges& r, int64_t o) {
  const int64_t n = o * r.scale;
  const AxisSpan<int64_t> s{quotient(n + r.begin_shift, r.divisor, r.limit),
                            quotient(n + r.end_shift, r.divisor, r.limit)};
  return {s.begin, std::max(s.begin, s.end)};
}

// Of element i in the sum for element o.
template <class C>
C weight_of(const AxisRanges& r, int64_t o, int64_t i) {
  if (r.weights == AxisWeights::kPart)
    return C(1) / C(((i + 1) * r.slope + r.unit - 1) / r.unit - i * r.slope / r.unit);
  const int64_t to = r.transposed ? i : o, from = r.transposed ? o : i;
  const int64_t place = std::clamp<int64_t>(to * r.slope + r.offset, 0, (r.in - 1) * r.unit);
  return C(r.unit - std::abs(place - from * r.unit)) / C(r.unit);
}

// The ranges of all elements along an axis, and their weights one range after the other.
struct Table {
  std::vector<int64_t> begin, end, first;
  std::vector<float> floats;
  std::vector<double> doubles;
  bool weighted, is_double;

  Table(const AxisRanges& r, Dtype dtype)
      : weighted(is_weighted(r)), is_double(dtype == Dtype::kFloat64) {
    int64_t count = 0;
    for (int64_t o = 0; o < r.count; ++o) {
      const AxisSpan<int64_t> s = span_of(r, o);
      begin.push_back(s.begin), end.push_back(s.end), first.push_back(count);
      count += s.end - s.begin;
      if (weighted)
        for (int64_t i = s.begin; i < s.end; ++i) add_weight(r, o, i);
    }
  }
  // Whether elements o - 1 and o are the same sum.
  bool repeats(int64_t o) const {
    const size_t i = size_t(o);
    return !weighted && o > 0 && begin[i] == begin[i - 1] && end[i] == end[i - 1];
  }
  int64_t length(int64_t o) const { return end[size_t(o)] - begin[size_t(o)]; }
  // Whether every element is one and the same, without a weight.
  bool repeats_one() const {
    const auto are = [](const std::vector<int64_t>& bounds, int64_t bound) {
      return std::all_of(bounds.begin(), bounds.end(), [=](int64_t b) { return b == bound; });
    };
    return !weighted && are(begin, 0) && are(end, 1);
  }
  // Of the range of element o; null where all are one.
  const void* weights(int64_t o) const {
    const size_t at = size_t(first[size_t(o)]);
    if (!weighted) return nullptr;
    return is_double ? static_cast<const void*>(doubles.data() + at) : floats.data() + at;
  }

 private:
  void add_weight(const AxisRanges& r, int64_t o, int64_t i) {
    if (is_double)
      doubles.push_back(weight_of<double>(r, o, i));
    else
      floats.push_back(weight_of<float>(r, o, i));
  }
};

// The ranges of a table for vectors of positions.
struct Taps {
  static constexpr int64_t kMost = 64, kVector = 16;
  int64_t count = 0, step = 0;
  std::vector<int32_t> columns;
  std::vector<float> floats, float_counts;
  std::vector<double> doubles, double_counts;

  // None where ranges are long: one position after the other then costs no more.
  Taps(const AxisRanges& r, const Table& table) {
    int64_t longest = 0;
    for (int64_t o = 0; o < r.count; ++o) longest = std::max(longest, table.length(o));
    if (longest > kMost || r.limit >= INT32_MAX) return;
    count = std::max<int64_t>(longest, 1), step = (r.count + kVector - 1) / kVector * kVector;
    columns.assign(size_t(count * step), int32_t(r.limit));
    for (int64_t o = 0; o < r.count; ++o)
      for (int64_t t = 0; t < table.length(o); ++t)
        columns[size_t(t * step + o)] = int32_t(table.begin[size_t(o)] + t);
    table.is_double ? fill(r, table, table.doubles, doubles, double_counts)
                    : fill(r, table, table.floats, floats, float_counts);
  }
  const void* weights() const { return pointer(floats, doubles); }
  const void* counts() const { return pointer(float_counts, double_counts); }

 private:
  template <class C>
  void fill(const AxisRanges& r, const Table& table, const std::vector<C>& from,
            std::vector<C>& weights, std::vector<C>& counts) {
    if (table.weighted) weights.assign(size_t(count * step), C(0));
    if (r.weights == AxisWeights::kMean) counts.assign(size_t(step), C(1));
    for (int64_t o = 0; o < r.count; ++o) {
      if (!counts.empty()) counts[size_t(o)] = C(table.length(o));
      if (!weights.empty())
        for (int64_t t = 0; t < table.length(o); ++t)
          weights[size_t(t * step + o)] = from[size_t(table.first[size_t(o)] + t)];
    }
  }
  static const void* pointer(const std::vector<float>& f, const std::vector<double>& d) {
    if (!f.empty()) return f.data();
    return d.empty() ? nullptr : d.data();
  }
};

// What the threads of a call share.
struct Work {
  AxisRanges rows, columns;
  Table row_table, column_table;
  const bool last;
  const ResampleLoops& loops;
  const char* x;
  char* y;
  int64_t images, channels, item;
  bool mean;
  const ResampleCall& call;

  explicit Work(const ResampleCall& c)
      : rows(axis_ranges(c.rows, c.adjoint)),
        columns(axis_ranges(c.columns, c.adjoint)),
        row_table(rows, c.x->dtype()),
        column_table(columns, c.x->dtype()),
        last(!(c.x->is_contiguous() && c.y->is_contiguous())),
        loops(loops_of<ResampleTables>(c.x->dtype())),
        x(static_cast<const char*>(c.x->raw_data())),
        y(static_cast<char*>(c.y->raw_data())),
        images(c.x->shape()[0]),
        channels(c.x->shape()[1]),
        item(c.x->itemsize()),
        mean(rows.weights == AxisWeights::kMean),
        call(c) {}
  double divisor(int64_t row) const {
    return mean ? call.divisor * double(row_table.length(row)) : call.divisor;
  }
};

// Whether a position is the one element that it sees.
bool is_copy(const ResampleLoops::Position& p) {
  return !p.accumulate && p.count[0] == 1 && p.count[1] == 1 && p.weights[0] == nullptr &&
         p.weights[1] == nullptr && p.divisor == 1;
}

// A row of positions with channels last.
void row_last(const Work& w, int64_t row) {
  const int64_t h = row % w.rows.count, n = row / w.rows.count;
  ResampleLoops::Position p{};
  p.channels = w.channels, p.accumulate = w.call.accumulate;
  p.step[1] = w.channels, p.step[0] = w.columns.limit * w.channels;
  p.count[0] = w.row_table.length(h), p.weights[0] = w.row_table.weights(h);
  const int64_t first = (n * w.rows.limit + w.row_table.begin[size_t(h)]) * w.columns.limit;
  for (int64_t i = 0; i < w.columns.count; ++i) {
    p.count[1] = w.column_table.length(i), p.weights[1] = w.column_table.weights(i);
    p.divisor = w.mean ? w.divisor(h) * double(p.count[1]) : w.divisor(h);
    const char* const x = w.x + (first + w.column_table.begin[size_t(i)]) * w.channels * w.item;
    char* const y = w.y + (row * w.columns.count + i) * w.channels * w.item;
    const size_t bytes = size_t(w.channels * w.item);
    if (!p.accumulate && w.column_table.repeats(i)) {
      std::memcpy(y, y - bytes, bytes);
      continue;
    }
    if (is_copy(p)) {
      std::memcpy(y, x, bytes);
      continue;
    }
    p.x = x, p.y = y;
    w.loops.sum_of_position(p);
  }
}

// What all rows of positions with channels first have in common.
ResampleLoops::Row common_row(const Work& w, const Taps& taps) {
  ResampleLoops::Row r{};
  r.width = w.columns.limit, r.positions = w.columns.count;
  r.begin = w.column_table.begin.data(), r.end = w.column_table.end.data();
  r.first = w.column_table.first.data(), r.column_weights = w.column_table.weights(0);
  r.mean = w.mean, r.accumulate = w.call.accumulate;
  r.taps = taps.count, r.tap_step = taps.step, r.tap_columns = taps.columns.data();
  r.tap_weights = taps.weights(), r.counts = taps.counts();
  const AxisMap& m = w.call.columns;
  if (m.rule != AxisRule::kWindow || w.call.adjoint) return r;
  r.kernel = m.kernel, r.stride = m.stride, r.pad = m.pad;
  r.whole[0] = std::min((m.pad + m.stride - 1) / m.stride, m.out);
  const int64_t room = m.in + m.pad - m.kernel;
  r.whole[1] = room < 0 ? 0 : std::min(room / m.stride + 1, m.out);
  return r;
}

// A plane of positions with channels first.
void plane_first(const Work& w, ResampleLoops::Row r, int64_t plane) {
  for (int64_t h = 0; h < w.rows.count; ++h) {
    r.rows = w.row_table.length(h), r.row_weights = w.row_table.weights(h);
    r.divisor = w.divisor(h);
    r.x = w.x + (plane * w.rows.limit + w.row_table.begin[size_t(h)]) * r.width * w.item;
    char* const y = w.y + (plane * w.rows.count + h) * r.positions * w.item;
    const size_t bytes = size_t(r.positions * w.item);
    if (!r.accumulate && w.row_table.repeats(h)) {
      std::memcpy(y, y - bytes, bytes);
      continue;
    }
    r.y = y;
    w.loops.sum_of_row(r);
  }
}

// Planes with channels first in which one number is repeated, as in the gradient of global pooling.
// Returns false for anything else.
bool repeat_in_planes(const Work& w, int threads) {
  if (w.last || w.rows.limit != 1 || w.columns.limit != 1 || !w.row_table.repeats_one() ||
      !w.column_table.repeats_one())
    return false;
  const int64_t n = w.rows.count * w.columns.count;
  parallel_ranges(w.images * w.channels, 16, threads, [&](int64_t begin, int64_t end) {
    w.loops.spread_to_planes({w.x + begin * w.item, w.y + begin * n * w.item, end - begin, n,
                              w.divisor(0), w.call.accumulate});
  });
  return true;
}

void resample(const ResampleCall& call) {
  const Work w(call);
  // Units of about a nanosecond.
  const int64_t work = (call.x->size() + call.y->size()) / 4 + 1;
  const int threads = threads_for(work);
  if (repeat_in_planes(w, threads)) return;
  if (w.last)
    return parallel_for(w.images * w.rows.count, threads, [&](int64_t row) { row_last(w, row); });
  const Taps taps(w.columns, w.column_table);
  const ResampleLoops::Row common = common_row(w, taps);
  parallel_ranges(w.images * w.channels, 1, threads, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<double[]> sums(new double[size_t(common.width) + 1]);
    ResampleLoops::Row own = common;
    own.sums = sums.get();
    for (int64_t plane = begin; plane < end; ++plane) plane_first(w, own, plane);
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, resample) {
  kernels::resample.provide<&host::resample>(DeviceType::kCpu, "cpu");
}
