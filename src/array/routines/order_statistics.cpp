// median, quantile, percentile, and their variants that ignore NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/one_wait.h"
#include "array/result_into.h"
#include "catena/array/along_axis.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/sorting.h"
#include "catena/array/statistics.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/sort.h"

namespace catena {
namespace {

// The input as a contiguous matrix, one row for each result, and the shape of the results.
struct Slices {
  Array input;   // (rows, n), in the dtype of the computation
  Shape result;  // of one statistic
  int64_t n = 1;

  Slices(const Array& a, const ReduceOptions& options) {
    refuse_mask(options);
    const Dtype natural = is_float(a.dtype()) ? a.dtype() : Dtype::kFloat64;
    const Dtype dtype = options.dtype.value_or(natural);
    CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype for the result, got ",
                 dtype);
    const Axes axes = normalize_axes(options.axes, a.ndim());
    Axes order;
    int64_t rows = 1;
    for (int64_t i = 0; i < a.ndim(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
      const int64_t extent = a.shape()[size_t(i)];
      if (!reduced) order.push_back(i);
      (reduced ? n : rows) *= extent;
      if (!reduced || options.keepdims) result.push_back(reduced ? 1 : extent);
    }
    order.insert(order.end(), axes.begin(), axes.end());
    const Array moved = a.ndim() ? a.transpose(order) : a;
    input = moved.astype(dtype, false).contiguous().reshape({rows, n});
  }
};

// Elements of the given ranks in every row: columns of (rows, ranks.size()).
Array ranked(const Slices& slices, const std::vector<int64_t>& ranks) {
  const Array output = Array::uninitialized({slices.input.shape()[0], int64_t(ranks.size())},
                                            slices.input.dtype(), slices.input.device());
  if (output.size() > 0) kernels::order_statistics(output.device(), {slices.input, ranks, output});
  return output;
}

Array column(const Array& table, const std::vector<int64_t>& ranks, int64_t rank) {
  const auto place = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return table(Slice(), int64_t(place));
}

// NaN sorts last, so the last element of a row is NaN if any element is.
Array spread_nan(const Array& value, const Array& last) { return where(isnan(last), last, value); }

void sort_ranks(std::vector<int64_t>& ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

Array deliver(const Array& value, const Shape& shape, const ReduceOptions& options) {
  return result_into(value.reshape(shape), options.out);
}

// The mean of a and b, in float64 by halves where the sum overflows.
Array midpoint(const Array& a, const Array& b) {
  const Array x = a.astype(Dtype::kFloat64, false), y = b.astype(Dtype::kFloat64, false),
              sum = add(x, y), halves = add(multiply(x, 0.5), multiply(y, 0.5));
  return where(isfinite(sum), multiply(sum, 0.5), halves).astype(a.dtype(), false);
}

// The number a fraction t (float64, 0-d or of their shape) of the way from a to b >= a, by NumPy's
// formula in float64, in which b - a overflows for the largest float64 alone: then by halves.
Array between(const Array& a, const Array& b, const Array& t) {
  const Array x = a.astype(Dtype::kFloat64, false), y = b.astype(Dtype::kFloat64, false),
              step = subtract(y, x), half = subtract(multiply(y, 0.5), multiply(x, 0.5));
  const auto part = [&](const Array& of) {
    return where(isfinite(step), multiply(step, of), multiply(half, multiply(of, 2)));
  };
  return where(less(t, 0.5), add(x, part(t)), subtract(y, part(subtract(1, t))))
      .astype(a.dtype(), false);
}

// The position of a quantile: a fraction `t` of the way from element `below` to the next.
struct Place {
  int64_t below;
  double t;
};

Place place_of(double q, int64_t n, QuantileMethod method) {
  double position = q * static_cast<double>(n - 1);
  if (method == QuantileMethod::kLower) position = std::floor(position);
  if (method == QuantileMethod::kHigher) position = std::ceil(position);
  if (method == QuantileMethod::kNearest) position = std::nearbyint(position);
  if (method == QuantileMethod::kMidpoint)
    position = 0.5 * (std::floor(position) + std::ceil(position));
  const auto below = std::min(static_cast<int64_t>(std::floor(position)), n - 1);
  return {below, position - static_cast<double>(below)};
}

// Interpolates between the neighbours of a position.
Array interpolate(const Array& table, const std::vector<int64_t>& ranks, Place place, int64_t n,
                  QuantileMethod method) {
  const auto [below, t] = place;
  const Array a = column(table, ranks, below), b = column(table, ranks, std::min(below + 1, n - 1));
  // Exactly one element: with an infinite neighbour the formula would give NaN.
  if (t == 0 && method != QuantileMethod::kLinear && method != QuantileMethod::kMidpoint) return a;
  return between(a, b, full({}, t, {Dtype::kFloat64, a.device()}));
}

Array quantiles(const Array& a, const Quantiles& asked, double scale, const ReduceOptions& options,
                QuantileMethod method) {
  check_defined(a);
  const std::vector<double> q = asked.values();
  CATENA_CHECK(DtypeError, a.dtype() != Dtype::kBool,
               "elements of bool cannot be interpolated; convert them with astype");
  const Slices slices(a, options);
  const int64_t n = slices.n, rows = slices.input.shape()[0];
  CATENA_CHECK(ValueError, n > 0 || rows == 0, "no elements along the reduced axes of shape ",
               a.shape());
  std::vector<int64_t> ranks{n - 1};
  for (double x : q) {
    CATENA_CHECK(ValueError, x >= 0 && x <= scale, "expected q of 0 to ", scale, ", got ", x);
    const int64_t below = place_of(x / scale, n, method).below;
    ranks.push_back(below);
    ranks.push_back(std::min(below + 1, n - 1));
  }
  sort_ranks(ranks);
  Shape shape = slices.result;
  const Shape lead = asked.shape();
  shape.insert(shape.begin(), lead.begin(), lead.end());
  const Array results =
      empty({static_cast<int64_t>(q.size()), rows}, {slices.input.dtype(), a.device()});
  if (results.size() > 0) {
    const Array table = ranked(slices, ranks), last = column(table, ranks, n - 1);
    for (size_t i = 0; i < q.size(); ++i) {
      results[int64_t(i)].assign(spread_nan(
          interpolate(table, ranks, place_of(q[i] / scale, n, method), n, method), last));
    }
  }
  return deliver(results, shape, options);
}

}  // namespace

std::vector<double> Quantiles::values() const {
  if (!array_) return list_;
  refuse_capture(*array_);
  return array_->to_vector<double>();
}

Array median(const Array& a, const ReduceOptions& options) {
  const EntryScope call("median");
  const Slices slices(a, options);
  const int64_t n = slices.n, rows = slices.input.shape()[0];
  if (n == 0 || rows == 0) {
    const Array nan =
        full({rows}, std::numeric_limits<double>::quiet_NaN(), {slices.input.dtype(), a.device()});
    return deliver(nan, slices.result, options);
  }
  std::vector<int64_t> ranks{(n - 1) / 2, n / 2, n - 1};
  sort_ranks(ranks);
  const Array table = ranked(slices, ranks);
  Array middle = column(table, ranks, n / 2);
  if (n % 2 == 0) middle = midpoint(column(table, ranks, n / 2 - 1), middle);
  return deliver(spread_nan(middle, column(table, ranks, n - 1)), slices.result, options);
}

namespace {

// Rows in ascending order with NaN last, and how many numbers each holds: (rows, 1).
struct NumberRows {
  Array sorted, count;
  explicit NumberRows(const Array& rows)
      : sorted(sort(rows)), count(sum(logical_not(isnan(rows)), {1, true})) {}
  // The element of each row at a position. Positions out of range give the first or last element.
  Array at(const Array& positions) const {
    return take_along_axis(sorted, positions, 1, OutOfRange::kClip);
  }
};

// The q-quantile of the numbers of each row; NaN for a row without numbers.
Array number_quantile(const NumberRows& rows, double q, QuantileMethod method) {
  Array position = multiply(subtract(rows.count, 1).astype(Dtype::kFloat64), q);
  if (method == QuantileMethod::kLower) position = floor(position);
  if (method == QuantileMethod::kHigher) position = ceil(position);
  if (method == QuantileMethod::kNearest) position = rint(position);
  if (method == QuantileMethod::kMidpoint)
    position = multiply(add(floor(position), ceil(position)), 0.5);
  const Array lower = floor(position), below = lower.astype(Dtype::kInt64);
  const Array above = minimum(add(below, 1), subtract(rows.count, 1));
  const bool one_element = method != QuantileMethod::kLinear && method != QuantileMethod::kMidpoint;
  const Array a = rows.at(below);
  const Array value = one_element ? a : between(a, rows.at(above), subtract(position, lower));
  return where(equal(rows.count, 0), std::numeric_limits<double>::quiet_NaN(), value);
}

Array number_quantiles(const Array& a, const Quantiles& asked, double scale,
                       const ReduceOptions& options, QuantileMethod method) {
  check_defined(a);
  const std::vector<double> q = asked.values();
  CATENA_CHECK(DtypeError, a.dtype() != Dtype::kBool,
               "elements of bool cannot be interpolated; convert them with astype");
  const Slices slices(a, options);
  const Dtype dtype = slices.input.dtype();
  const int64_t rows = slices.input.shape()[0];
  Shape shape = slices.result;
  const Shape lead = asked.shape();
  shape.insert(shape.begin(), lead.begin(), lead.end());
  const Array results = full({int64_t(q.size()), rows, 1}, std::numeric_limits<double>::quiet_NaN(),
                             {dtype, a.device()});
  for (double x : q)
    CATENA_CHECK(ValueError, x >= 0 && x <= scale, "expected q of 0 to ", scale, ", got ", x);
  if (slices.n > 0 && results.size() > 0) {
    const NumberRows numbers(slices.input);
    for (size_t i = 0; i < q.size(); ++i)
      results[int64_t(i)].assign(number_quantile(numbers, q[i] / scale, method));
  }
  return deliver(results, shape, options);
}

}  // namespace

Array nanmedian(const Array& a, const ReduceOptions& options) {
  const EntryScope call("nanmedian");
  const Slices slices(a, options);
  const Array nan = full({slices.input.shape()[0], 1}, std::numeric_limits<double>::quiet_NaN(),
                         {slices.input.dtype(), a.device()});
  if (slices.input.size() == 0) return deliver(nan, slices.result, options);
  const NumberRows rows(slices.input);
  const Array low = rows.at(floor_divide(subtract(rows.count, 1), 2)),
              high = rows.at(floor_divide(rows.count, 2));
  const Array odd = not_equal(remainder(rows.count, 2), 0);
  const Array value = where(odd, low, midpoint(low, high));
  return deliver(where(equal(rows.count, 0), nan, value), slices.result, options);
}

Array quantile(const Array& a, const Quantiles& q, const ReduceOptions& options,
               QuantileMethod method) {
  const EntryScope call("quantile");
  return quantiles(a, q, 1, options, method);
}
Array quantile(const Array& a, const Quantiles& q, const ReduceAxes& axes, QuantileMethod method) {
  return quantile(a, q, ReduceOptions::over(axes), method);
}

Array percentile(const Array& a, const Quantiles& q, const ReduceOptions& options,
                 QuantileMethod method) {
  const EntryScope call("percentile");
  return quantiles(a, q, 100, options, method);
}
Array percentile(const Array& a, const Quantiles& q, const ReduceAxes& axes,
                 QuantileMethod method) {
  return percentile(a, q, ReduceOptions::over(axes), method);
}

Array nanquantile(const Array& a, const Quantiles& q, const ReduceOptions& options,
                  QuantileMethod method) {
  const EntryScope call("nanquantile");
  return number_quantiles(a, q, 1, options, method);
}
Array nanquantile(const Array& a, const Quantiles& q, const ReduceAxes& axes,
                  QuantileMethod method) {
  return nanquantile(a, q, ReduceOptions::over(axes), method);
}

Array nanpercentile(const Array& a, const Quantiles& q, const ReduceOptions& options,
                    QuantileMethod method) {
  const EntryScope call("nanpercentile");
  return number_quantiles(a, q, 100, options, method);
}
Array nanpercentile(const Array& a, const Quantiles& q, const ReduceAxes& axes,
                    QuantileMethod method) {
  return nanpercentile(a, q, ReduceOptions::over(axes), method);
}

Array median(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return median(a, ReduceOptions::over(axes, keepdims));
}
Array nanmedian(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return nanmedian(a, ReduceOptions::over(axes, keepdims));
}

}  // namespace catena
