// Statistics: spreads, medians and positions of extremes that leave NaN out, covariances, counts on
// a grid, as NumPy. Means and order statistics are in reduction.h and sorting.h.
#pragma once

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"

namespace catena {

// var and std of the elements that are not NaN; NaN for a slice with at most `ddof` of them.
Array nanvar(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false,
             int64_t ddof = 0);
Array nanvar(const Array& a, const ReduceOptions& options, int64_t ddof = 0);
template <AxisNumber T>
Array nanvar(const Array& a, const ReduceAxes& axes, T ddof) {
  return nanvar(a, axes, false, static_cast<int64_t>(ddof));
}
Array nanstd(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false,
             int64_t ddof = 0);
Array nanstd(const Array& a, const ReduceOptions& options, int64_t ddof = 0);
template <AxisNumber T>
Array nanstd(const Array& a, const ReduceAxes& axes, T ddof) {
  return nanstd(a, axes, false, static_cast<int64_t>(ddof));
}

// median, quantile and percentile of the elements that are not NaN; NaN for a slice without any.
// Dtypes and options as there.
Array nanmedian(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array nanmedian(const Array& a, const ReduceOptions& options);
Array nanquantile(const Array& a, const Quantiles& q, const ReduceAxes& axes = none,
                  QuantileMethod method = QuantileMethod::kLinear);
Array nanquantile(const Array& a, const Quantiles& q, const ReduceOptions& options,
                  QuantileMethod method = QuantileMethod::kLinear);
Array nanpercentile(const Array& a, const Quantiles& q, const ReduceAxes& axes = none,
                    QuantileMethod method = QuantileMethod::kLinear);
Array nanpercentile(const Array& a, const Quantiles& q, const ReduceOptions& options,
                    QuantileMethod method = QuantileMethod::kLinear);

// argmax and argmin that pass NaN over. ValueError for a slice of nothing but NaN: waits once for a
// GPU when the dtype is a float.
Array nanargmax(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array nanargmin(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);

// cumsum and cumprod with NaN as 0 and as 1.
Array nancumsum(const Array& a, OptionalAxis axis = none, std::optional<Dtype> dtype = {});
Array nancumprod(const Array& a, OptionalAxis axis = none, std::optional<Dtype> dtype = {});

// How cov and corrcoef read and weight their argument.
struct CovarianceOptions {
  bool rowvar = true;  // rows are variables and columns observations; else the other way round
  bool bias = false;   // divides by the number of observations n, not by n - 1
  std::optional<int64_t> ddof = {};  // divides by n - ddof, whatever bias says
};
// Covariance matrix, float64, of the variables of a 1-d or 2-d array (a 1-d one is one variable),
// and of those of `y` after them; 0-d for one variable. ShapeError for more axes or for y with
// another number of observations.
Array cov(const Array& x, const CovarianceOptions& options = {});
Array cov(const Array& x, const Array& y, const CovarianceOptions& options = {});
// Correlation coefficients: the covariances over the standard deviations of both, in [-1, 1].
Array corrcoef(const Array& x, YesNo rowvar = true);
Array corrcoef(const Array& x, const Array& y, YesNo rowvar = true);

// Histograms over the cells of a grid: float64 counts, sums of weights, or densities; shape (bins
// of each axis ...). `samples` is (elements, axes), with one array of ascending edges for each
// axis. ShapeError for others. Checks the edges as histogram does: waits for a GPU.
Array histogramdd(const Array& samples, const std::vector<Array>& edges,
                  const HistogramOptions& options = {});
struct Histogram2d {
  Array counts;            // (bins of x, bins of y)
  Array x_edges, y_edges;  // float64
};
// Of pairs of elements of two 1-d arrays, in equal bins between the extremes of each, or with
// edges.
Histogram2d histogram2d(const Array& x, const Array& y, int64_t bins = 10,
                        const HistogramOptions& options = {});
Histogram2d histogram2d(const Array& x, const Array& y, const Array& x_edges, const Array& y_edges,
                        const HistogramOptions& options = {});

}  // namespace catena
