// Counts of values: bincount and histograms of one variable.
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/one_wait.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/count.h"
#include "catena/kernels/index.h"
#include "core/compute_dtype.h"

namespace catena {
namespace {

// The smallest and the largest element, read with a single synchronisation.
std::pair<Scalar, Scalar> extremes(const Array& a) {
  refuse_capture(a);
  const Array both = empty({2}, {a.dtype(), a.device()});
  const Array low = both[0], high = both[1];
  amin(a, {.out = low});
  amax(a, {.out = high});
  const Array host = both.to_cpu();
  return {host[0].item(), host[1].item()};
}

// An element for each number up to `largest`, which occurs in x, and for `length` numbers at least.
Array room_for_counts(const Scalar& largest, int64_t length, Dtype dtype, const Device& device) {
  try {
    return empty({length}, {dtype, device});
  } catch (const OutOfMemoryError&) {
    if (largest.to<int64_t>() + 1 < length) throw;  // a minlength
    fail<OutOfMemoryError>(called_function(), ": the largest element is ", largest, ", and ",
                           device,
                           " has no memory for a count of each number up to it; unique(x, "
                           "{.return_counts = true}) counts the numbers that occur");
  }
}

}  // namespace

Array bincount(const Array& x, const std::optional<Array>& weights, int64_t minlength) {
  const EntryScope call("bincount");
  CATENA_CHECK(DtypeError, !is_float(x.dtype()), "expected integers, got ", x.dtype());
  CATENA_CHECK(ShapeError, x.ndim() == 1, "expected a 1-d array, got shape ", x.shape());
  CATENA_CHECK(ValueError, minlength >= 0, "expected minlength >= 0, got ", minlength);
  if (weights) {
    check_same_device(x, *weights);
    CATENA_CHECK(ShapeError, weights->shape() == x.shape(), "weights of shape ", weights->shape(),
                 " for an array of shape ", x.shape());
  }
  // For an empty array NumPy returns integers, even with weights.
  if (x.size() == 0) return zeros({minlength}, {Dtype::kInt64, x.device()});
  const auto [low, high] = extremes(x);
  CATENA_CHECK(ValueError, low.to_double() >= 0, "expected no negative element, got ", low);
  CATENA_CHECK(ValueError, high.to_double() < 0x1p62, "element ", high, " is too large");
  const int64_t length = std::max(minlength, high.to<int64_t>() + 1);
  if (!weights) {
    const Array counts = room_for_counts(high, length, Dtype::kInt64, x.device());
    kernels::bincount(x.device(), {x.contiguous(), counts});
    return counts;
  }
  const Array sums = room_for_counts(high, length, Dtype::kFloat64, x.device());
  sums.fill(0);
  const Array values = weights->astype(Dtype::kFloat64, false).contiguous();
  kernels::scatter_add(x.device(),
                       {sums.reshape({1, length, 1}), x.astype(Dtype::kInt64, false).contiguous(),
                        values.reshape({1, x.size(), 1})});
  return sums;
}

namespace {

// linspace(first, last, bins + 1), of a dtype. Every operation is rounded to `steps`, as NumPy
// computes it from bounds of that dtype. (Computing in double rounds float32 sums and products
// correctly.) Where the width of the range overflows, edges are weighted means of the bounds.
Array even_edges(double first, double last, int64_t bins, Dtype steps, Dtype dtype) {
  const auto r = [&](double v) { return round_to(steps, v); };
  const double width = r(last - first), step = r(width / double(bins));
  const auto edge = [&](int64_t i) {
    const double part = double(i) / double(bins);
    return std::isfinite(width) ? r(double(i) * step) + first : first * (1 - part) + last * part;
  };
  const Array edges = Array::uninitialized({bins + 1}, Dtype::kFloat64, cpu());
  auto* e = edges.data<double>();
  for (int64_t i = 0; i <= bins; ++i) {
    e[i] = round_to(dtype, i < bins ? r(edge(i)) : last);
    CATENA_CHECK(ValueError, i == 0 || e[i - 1] < e[i], "the range [", first, ", ", last,
                 "] has too few numbers of ", dtype, " for the edges of ", bins,
                 " bins; take fewer bins, or convert the elements to a wider dtype with astype()");
  }
  return edges.astype(dtype, false);
}

// The dtype in which elements are compared with edges.
Dtype comparison_dtype(Dtype d) {
  if (is_float(d)) return compute_dtype(d);
  return d == Dtype::kUInt64 ? d : Dtype::kInt64;
}

Array count_in_bins(const Array& a, const Array& edges, bool uniform) {
  const int64_t bins = std::max<int64_t>(edges.size() - 1, 0);
  const Array counts = zeros({bins}, {Dtype::kInt64, a.device()});
  if (bins == 0 || a.size() == 0) return counts;
  const Dtype dtype = comparison_dtype(promote(a.dtype(), edges.dtype()));
  const Array x = a.astype(dtype, false).contiguous(), e = edges.astype(dtype, false).contiguous();
  kernels::histogram(a.device(), HistogramCall{&x, &e, uniform, &counts});
  return counts;
}

// The sum of the weights in each bin, float64, instead of counts. searchsorted finds an element's
// bin.
Array weights_in_bins(const Array& a, const Array& edges, const Array& weights) {
  check_same_device(a, weights);
  CATENA_CHECK(ShapeError, weights.shape() == a.shape(), "weights of shape ", weights.shape(),
               " for an array of shape ", a.shape());
  const int64_t bins = std::max<int64_t>(edges.size() - 1, 0);
  // Bin 0 receives elements before the first edge; bin bins + 1, elements after the last and NaN.
  const Array sums = zeros({1, bins + 2, 1}, {Dtype::kFloat64, a.device()});
  if (bins > 0 && a.size() > 0) {
    const Dtype compared = comparison_dtype(promote(a.dtype(), edges.dtype()));
    const Array x = a.astype(compared, false).ravel(), e = edges.astype(compared, false);
    const Array place = searchsorted(e, x, true),
                bin = subtract(place, equal(x, e[bins]).astype(Dtype::kInt64));
    kernels::scatter_add(a.device(),
                         {sums, bin.contiguous(),
                          weights.astype(Dtype::kFloat64, false).contiguous().reshape({1, -1, 1})});
  }
  return sums.reshape({bins + 2})(Slice(1, bins + 1));
}

// Sums of weights in the weights' dtype; integers wrap.
Array in_dtype_of(const Array& weights, const Array& sums) {
  const Dtype dtype = weights.dtype() == Dtype::kBool ? Dtype::kFloat64 : weights.dtype();
  const Dtype through = is_float(dtype) || itemsize(dtype) == 8 ? dtype : Dtype::kInt64;
  return sums.astype(through, false).astype(dtype, false);
}

std::pair<Array, Array> filled(const Array& a, const Array& edges, bool uniform,
                               const HistogramOptions& options) {
  const Array bins = options.weights ? weights_in_bins(a, edges, *options.weights)
                                     : count_in_bins(a, edges, uniform);
  if (options.density) {
    const Array heights = divide(bins, diff(edges.astype(Dtype::kFloat64, false)));
    return {divide(heights, sum(bins)), edges};
  }
  return {options.weights ? in_dtype_of(*options.weights, bins) : bins, edges};
}

}  // namespace

std::pair<Array, Array> histogram(const Array& a, int64_t bins,
                                  std::optional<std::pair<double, double>> range,
                                  const HistogramOptions& options) {
  const EntryScope call("histogram");
  CATENA_CHECK(ValueError, bins >= 1, "expected at least one bin, got ", bins);
  CATENA_CHECK(ValueError, bins < std::numeric_limits<int64_t>::max(),
               "expected fewer than 2^63 - 1 bins, got ", bins);
  const Dtype dtype = is_float(a.dtype()) ? a.dtype() : Dtype::kFloat64;
  double first = 0, last = 1;
  if (range) {
    std::tie(first, last) = *range;
  } else if (a.size() > 0) {
    const auto [low, high] = extremes(a);
    first = low.to_double();
    last = high.to_double();
  }
  CATENA_CHECK(ValueError, std::isfinite(first) && std::isfinite(last), "the range [", first, ", ",
               last, "]", range ? "" : " of the elements", " is not finite");
  CATENA_CHECK(ValueError, first <= last, "expected an ascending range, got [", first, ", ", last,
               "]");
  // Bounds taken from elements have their dtype. Given bounds are exact until edges are rounded.
  const Dtype steps = range ? Dtype::kFloat64 : dtype;
  if (first == last) {
    first = round_to(steps, first - 0.5);
    last = round_to(steps, last + 0.5);
  }
  const Array edges = even_edges(first, last, bins, steps, dtype).to(a.device());
  return filled(a, edges, true, options);
}

std::pair<Array, Array> histogram(const Array& a, const Array& edges,
                                  const HistogramOptions& options) {
  const EntryScope call("histogram");
  CATENA_CHECK(ValueError, edges.ndim() == 1, "expected 1-d edges, got shape ", edges.shape());
  check_same_device(a, edges);
  if (edges.size() > 1) {
    refuse_capture(edges);
    const Array decreases = greater(edges(Slice(0, -1)), edges(Slice(1, none)));
    CATENA_CHECK(ValueError, !any(decreases).item<bool>(), "expected edges that do not decrease");
  }
  return filled(a, edges, false, options);
}

}  // namespace catena
