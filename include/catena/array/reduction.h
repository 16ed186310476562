// Reductions over axes. Each has two forms: with the axes and keepdims alone, or with all that it
// takes by name (ReduceOptions).
//
//   sum(a)   sum(a, 0)   sum(a, {0, 1})   sum(a, 1, true)   sum(a, {none, true})
//   sum(a, {.axes = {0, 1}, .keepdims = true, .out = c})
//
// Without axes they reduce all of them; keepdims leaves extent 1 in their place. Sums of 16- and
// 32-bit floats accumulate in float32 by blocks, of float64 in float64.
//
// sum, prod, mean, var, std, amax, amin, all, any, count_nonzero and the nan... functions take
// `where`, a bool array that broadcasts to the input (DtypeError, ShapeError): elements where it is
// false do not count. sum, prod, amax and amin take `initial`, one more element of every slice; it
// is the result where no element counts, so amax and amin with `where` need it (ValueError).
#pragma once

#include "catena/array/array.h"

namespace catena {

// Integers and bool add up in int64 (uint64 for unsigned), floats in their own dtype.
Array sum(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array sum(const Array& a, const ReduceOptions& options);
Array prod(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array prod(const Array& a, const ReduceOptions& options);
// Integers and bool average in float64. An empty mean is NaN.
Array mean(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array mean(const Array& a, const ReduceOptions& options);
// The mean of squared deviations, with the divisor n - ddof, and its square root. A whole number
// after the axes is ddof.
Array var(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false, int64_t ddof = 0);
Array var(const Array& a, const ReduceOptions& options, int64_t ddof = 0);
template <AxisNumber T>
Array var(const Array& a, const ReduceAxes& axes, T ddof) {
  return var(a, axes, false, static_cast<int64_t>(ddof));
}
Array std(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false, int64_t ddof = 0);
Array std(const Array& a, const ReduceOptions& options, int64_t ddof = 0);
template <AxisNumber T>
Array std(const Array& a, const ReduceAxes& axes, T ddof) {
  return std(a, axes, false, static_cast<int64_t>(ddof));
}
// NaN wins. Zero elements are a ValueError.
Array amax(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array amax(const Array& a, const ReduceOptions& options);
Array amin(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array amin(const Array& a, const ReduceOptions& options);
// Largest minus smallest; zero elements are a ValueError.
Array ptp(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array ptp(const Array& a, const ReduceOptions& options);
// Whether all elements, or any, are not 0.
Array all(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array all(const Array& a, const ReduceOptions& options);
Array any(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array any(const Array& a, const ReduceOptions& options);
// int64 positions of the first extreme element (NaN counts as extreme) along one axis; without an
// axis in the flattened array. Zero elements and several axes are a ValueError. Of the options they
// take `out` and `dtype`, to which the positions are cast.
Array argmax(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array argmax(const Array& a, const ReduceOptions& options);
Array argmin(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array argmin(const Array& a, const ReduceOptions& options);
// How many elements are not 0 (NaN counts): the number (waits), or int64 counts over axes.
int64_t count_nonzero(const Array& a);
Array count_nonzero(const Array& a, const ReduceAxes& axes, YesNo keepdims = false);
Array count_nonzero(const Array& a, const ReduceOptions& options);

// sum(a * weights) / sum(weights), of a float dtype: float64 if `a` holds integers or bool, else
// what a and weights promote to. Weights have the shape of a, or are 1-d along
// the one reduced axis; all zero weights are a ValueError (one synchronisation).
Array average(const Array& a, const Array& weights, const ReduceAxes& axes = none,
              YesNo keepdims = false);
Array average(const Array& a, const Array& weights, const ReduceOptions& options);
// The same as mean.
Array average(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array average(const Array& a, const ReduceOptions& options);

// The same leaving NaN out. An all-NaN mean, maximum or minimum is NaN; sums are 0, products 1.
Array nansum(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array nansum(const Array& a, const ReduceOptions& options);
Array nanprod(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array nanprod(const Array& a, const ReduceOptions& options);
Array nanmean(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array nanmean(const Array& a, const ReduceOptions& options);
Array nanmax(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array nanmax(const Array& a, const ReduceOptions& options);
Array nanmin(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array nanmin(const Array& a, const ReduceOptions& options);

// a summed down to `shape`, the inverse of broadcasting; `a` itself when the shapes agree.
Array sum_to(const Array& a, const Shape& shape);

}  // namespace catena
