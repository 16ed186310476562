#include "catena/array/statistics.h"

#include <algorithm>
#include <limits>

#include "array/one_wait.h"
#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A mask of the elements that are not NaN and are selected by options.where.
Array numbers_of(const Array& a, const ReduceOptions& options) {
  const Array numbers = logical_not(isnan(a));
  if (!options.where.given()) return numbers;
  CATENA_CHECK(DtypeError, options.where.dtype() == Dtype::kBool,
               "expected a bool array as `where`, got ", options.where.dtype());
  return logical_and(numbers, options.where);
}

using Spread = Array (*)(const Array&, const ReduceOptions&, int64_t);

// var or std of the elements that are not NaN.
Array spread(Spread function, const Array& a, const ReduceOptions& options, int64_t ddof) {
  refuse_initial(options);
  if (!is_float(a.dtype())) return function(a, options, ddof);
  const Array numbers = numbers_of(a, options);
  ReduceOptions inner{.axes = options.axes, .keepdims = options.keepdims};
  const Array count = sum(numbers, inner);
  inner.dtype = options.dtype;
  inner.where = numbers;
  const Array result = function(a, inner, ddof);
  return result_into(where(less_equal(count, ddof), kNan, result), options.out);
}

Array arg_extreme(bool maximum, const Array& a, const ReduceAxes& axes, bool keepdims) {
  if (!is_float(a.dtype())) return maximum ? argmax(a, axes, keepdims) : argmin(a, axes, keepdims);
  const double last = std::numeric_limits<double>::infinity();
  const Array nan = isnan(a), x = where(nan, maximum ? -last : last, a);
  refuse_capture(a);
  const Array empty = all(nan, axes);
  CATENA_CHECK(ValueError, a.size() == 0 || !any(empty).item<bool>(),
               "a slice holds nothing but NaN");
  return maximum ? argmax(x, axes, keepdims) : argmin(x, axes, keepdims);
}

// Variables as rows, in float64.
Array variables(const Array& x, bool rowvar) {
  CATENA_CHECK(ShapeError, x.ndim() <= 2, "expected at most 2 axes, got shape ", x.shape());
  const Array table = atleast_2d(x).astype(Dtype::kFloat64, false);
  return rowvar || x.ndim() < 2 ? table : table.transpose();
}

Array joined_variables(const Array& x, const Array& y, bool rowvar) {
  check_same_device(x, y);
  const Array a = variables(x, rowvar), b = variables(y, rowvar);
  CATENA_CHECK(ShapeError, a.shape(1) == b.shape(1), a.shape(1), " and ", b.shape(1),
               " observations; expected as many");
  return concatenate({a, b}, 0);
}

Array covariance(const Array& table, const CovarianceOptions& options) {
  const int64_t n = table.shape(1);
  const auto divisor = static_cast<double>(n - options.ddof.value_or(options.bias ? 0 : 1));
  const Array deviation = subtract(table, mean(table, {1, true}));
  const Array products = matmul(deviation, deviation.transpose());
  return divide(products, std::max(divisor, 0.0)).squeeze();
}

Array correlation(const Array& c) {
  if (c.ndim() == 0) return divide(c, c);
  const Array deviation = sqrt(c.diagonal());
  const Array r = divide(divide(c, deviation.expand_dims(1)), deviation.expand_dims(0));
  return clip(r, -1, 1);
}

}  // namespace

Array nanmean(const Array& a, const ReduceOptions& options) {
  const EntryScope call("nanmean");
  refuse_initial(options);
  if (!is_float(a.dtype())) return mean(a, options);
  ReduceOptions numbers = options;
  numbers.where = numbers_of(a, options);
  return mean(a, numbers);
}
Array nanmean(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return nanmean(a, ReduceOptions::over(axes, keepdims));
}

Array nanvar(const Array& a, const ReduceOptions& options, int64_t ddof) {
  const EntryScope call("nanvar");
  return spread(var, a, options, ddof);
}
Array nanstd(const Array& a, const ReduceOptions& options, int64_t ddof) {
  const EntryScope call("nanstd");
  return spread(catena::std, a, options, ddof);
}

Array nanvar(const Array& a, const ReduceAxes& axes, YesNo keepdims, int64_t ddof) {
  return nanvar(a, ReduceOptions::over(axes, keepdims), ddof);
}
Array nanstd(const Array& a, const ReduceAxes& axes, YesNo keepdims, int64_t ddof) {
  return nanstd(a, ReduceOptions::over(axes, keepdims), ddof);
}

Array nanargmax(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  const EntryScope call("nanargmax");
  return arg_extreme(true, a, axes, keepdims);
}
Array nanargmin(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  const EntryScope call("nanargmin");
  return arg_extreme(false, a, axes, keepdims);
}

Array nancumsum(const Array& a, OptionalAxis axis, std::optional<Dtype> dtype) {
  const EntryScope call("nancumsum");
  return cumsum(is_float(a.dtype()) ? where(isnan(a), 0, a) : a, axis, dtype);
}
Array nancumprod(const Array& a, OptionalAxis axis, std::optional<Dtype> dtype) {
  const EntryScope call("nancumprod");
  return cumprod(is_float(a.dtype()) ? where(isnan(a), 1, a) : a, axis, dtype);
}

Array cov(const Array& x, const CovarianceOptions& options) {
  const EntryScope call("cov");
  return covariance(variables(x, options.rowvar), options);
}
Array cov(const Array& x, const Array& y, const CovarianceOptions& options) {
  const EntryScope call("cov");
  return covariance(joined_variables(x, y, options.rowvar), options);
}
Array corrcoef(const Array& x, YesNo rowvar) {
  const EntryScope call("corrcoef");
  return correlation(covariance(variables(x, rowvar), {}));
}
Array corrcoef(const Array& x, const Array& y, YesNo rowvar) {
  const EntryScope call("corrcoef");
  return correlation(covariance(joined_variables(x, y, rowvar), {}));
}

Array histogramdd(const Array& samples, const std::vector<Array>& edges,
                  const HistogramOptions& options) {
  const EntryScope call("histogramdd");
  CATENA_CHECK(ShapeError, samples.ndim() == 2 && samples.shape(1) == int64_t(edges.size()),
               "samples of shape ", samples.shape(), " for ", edges.size(),
               " lists of edges; expected (elements, axes)");
  // Cells are numbered in C order of the result; elements outside share one cell after the last.
  Array cell = zeros({samples.shape(0)}, {Dtype::kInt64, samples.device()}), inside;
  Shape shape;
  for (int64_t k = 0; k < samples.shape(1); ++k) {
    const Array x = samples(Slice(), k), e = histogram(x, edges[size_t(k)]).second;
    const int64_t bins = e.size() - 1;
    CATENA_CHECK(ShapeError, bins >= 1, "expected at least 2 edges for axis ", k);
    const Array bin =
        subtract(subtract(searchsorted(e, x, true), 1), equal(x, e[bins]).astype(Dtype::kInt64));
    const Array valid = logical_and(greater_equal(bin, 0), less(bin, bins));
    inside = inside.defined() ? logical_and(inside, valid) : valid;
    cell = add(multiply(cell, bins), bin);
    shape.push_back(bins);
  }
  const int64_t cells = element_count(shape);
  cell = inside.defined() ? where(inside, cell, cells) : cell;
  const Array sums =
      bincount(cell, options.weights, cells + 1)(Slice(0, cells)).astype(Dtype::kFloat64, false);
  Array counts = sums.reshape(shape);
  if (!options.density) return counts;
  counts = divide(counts, sum(counts));
  for (size_t k = 0; k < edges.size(); ++k) {
    Shape line(shape.size(), 1);
    line[k] = shape[k];
    counts = divide(counts, diff(edges[k].astype(Dtype::kFloat64, false)).reshape(line));
  }
  return counts;
}

Histogram2d histogram2d(const Array& x, const Array& y, const Array& x_edges, const Array& y_edges,
                        const HistogramOptions& options) {
  const EntryScope call("histogram2d");
  CATENA_CHECK(ShapeError, x.ndim() == 1 && x.shape() == y.shape(),
               "expected two 1-d arrays of one length, got shapes ", x.shape(), " and ", y.shape());
  Histogram2d result{
      {}, x_edges.astype(Dtype::kFloat64, false), y_edges.astype(Dtype::kFloat64, false)};
  const Array samples = stack({x.astype(Dtype::kFloat64), y.astype(Dtype::kFloat64)}, 1);
  result.counts = histogramdd(samples, {result.x_edges, result.y_edges}, options);
  return result;
}

Histogram2d histogram2d(const Array& x, const Array& y, int64_t bins,
                        const HistogramOptions& options) {
  const EntryScope call("histogram2d");
  const auto edges = [&](const Array& a) {
    return histogram(a.astype(Dtype::kFloat64, false), bins).second;
  };
  return histogram2d(x, y, edges(x), edges(y), options);
}

}  // namespace catena
