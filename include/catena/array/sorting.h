// Sorting, searching in sorted arrays, distinct elements and order statistics, as NumPy.
//
// All dtypes. The order is that of numbers with NaN after all of them (whatever its sign) and -0
// equal to 0; false is less than true. `axis` counts from the end when negative and is an
// IndexError when out of range; `none` means the flattened array. Results are new contiguous arrays
// on the array's device. Unless said otherwise nothing waits for a GPU, so that calls may be
// captured in a graph.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/reduction.h"

namespace catena {

// A sorted copy along one axis. A 0-d array has no axis but `none`: IndexError. `out`: shape of the
// result, may be `a` itself; it is cast.
Array sort(const Array& a, OptionalAxis axis = -1, const Out& out = {});
// int64 positions that sort `a` along the axis. Always stable: equal elements, -0 and 0, and all
// NaNs stay in their order. A 0-d array gives {0}, as in NumPy.
Array argsort(const Array& a, OptionalAxis axis = -1);

// int64 positions that sort by several keys of one shape along an axis: by the last key, where it
// is equal by the one before, and so on; stable. ValueError without a key.
Array lexsort(std::span<const Array> keys, Axis axis = -1);
Array lexsort(std::initializer_list<Array> keys, Axis axis = -1);

// The k largest (or smallest) elements along an axis, best first, and their int64 positions; equal
// elements come in the order of their positions. NaN counts as larger than any number. ValueError
// unless 0 <= k <= extent.
std::pair<Array, Array> topk(const Array& a, int64_t k, OptionalAxis axis = -1,
                             YesNo largest = true);

// Positions at which `values` go into the 1-d array `sorted` (ascending) so that it stays sorted:
// before equal elements, or after them when `right`. int64, of the shape of `values`; both are
// compared in their promoted dtype (host numbers count as int64 or float64). ShapeError unless
// `sorted` is 1-d. Whether it is sorted is not checked.
Array searchsorted(const Array& sorted, const Operand& values, bool right = false);
// Number of the bin of each element: i with bins[i-1] <= x < bins[i] (right: bins[i-1] < x <=
// bins[i]) for ascending bins, and with the inequalities turned for descending ones. int64, of the
// shape of x. ValueError unless `bins` is 1-d and monotonic. Waits once for a GPU, to check that;
// Error during graph capture.
Array digitize(const Array& x, const Array& bins, bool right = false);

// What unique returns beside the values.
struct UniqueOptions {
  bool return_index = false;    // position of the first occurrence of each value
  bool return_inverse = false;  // position in `values` of each element
  bool return_counts = false;   // number of occurrences
  // Distinct slices along this axis in place of distinct elements.
  OptionalAxis axis = none;
};
// The result of unique; arrays that were not asked for are undefined.
struct Unique {
  Array values;  // distinct elements, ascending; NaNs count as one value, -0 and 0 too
  Array index;  // int64, as long as values, positions in the flattened array; null unless asked for
  Array inverse;  // int64, of the shape of `a`; null unless asked for
  Array counts;   // int64, as long as values; null unless asked for
};
// Distinct elements of the flattened array; with an axis, distinct slices in the order of their
// elements, where slices with NaN differ from all others, one sort for each element of a slice;
// index, inverse and counts are then 1-d. The size of the result depends on the elements: waits
// once for a GPU; Error during graph capture.
Unique unique(const Array& a, const UniqueOptions& options = {});

// Which number stands for a position between two elements.
enum class QuantileMethod : uint8_t {
  kLinear,    // on the line between them
  kLower,     // the lower one
  kHigher,    // the higher one
  kNearest,   // the nearer one; halfway the one of even position
  kMidpoint,  // their mean
};

// Which quantiles: a number, a list {0.25, 0.75}, or an array. Lists and arrays give their shape to
// the first axes of the result.
class Quantiles {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Quantiles(T q) : list_{static_cast<double>(q)} {}
  Quantiles(std::initializer_list<double> q) : Quantiles(std::vector<double>(q)) {}
  Quantiles(std::vector<double> q) : shape_{static_cast<int64_t>(q.size())}, list_(std::move(q)) {}
  Quantiles(const Array& q) : array_(q) {}

  // Their shape, 0-d for a number, and all of them in C order. Reading an array waits for a GPU.
  Shape shape() const { return array_ ? array_->shape() : shape_; }
  std::vector<double> values() const;

 private:
  std::optional<Array> array_;
  Shape shape_;  // of the list
  std::vector<double> list_;
};

// Order statistics over the given axes (none given: all), with the two forms of other reductions.
// Floats keep their dtype, integers give float64; `dtype` of the options chooses another float to
// compute in, `out` receives the result (shape checked, cast). A slice with a NaN gives NaN.
// The middle element, or the mean of the two; NaN for an empty slice. bool counts as 0 and 1.
Array median(const Array& a, const ReduceAxes& axes = none, YesNo keepdims = false);
Array median(const Array& a, const ReduceOptions& options);
// The q-quantile, q of [0, 1] (ValueError otherwise), by linear interpolation between the elements
// around position q (n - 1), or by another method; NumPy's formula, so an infinite neighbour of
// weight 0 gives NaN. An empty slice is a ValueError, bool a DtypeError.
Array quantile(const Array& a, const Quantiles& q, const ReduceAxes& axes = none,
               QuantileMethod method = QuantileMethod::kLinear);
Array quantile(const Array& a, const Quantiles& q, const ReduceOptions& options,
               QuantileMethod method = QuantileMethod::kLinear);
// The same with q of [0, 100].
Array percentile(const Array& a, const Quantiles& q, const ReduceAxes& axes = none,
                 QuantileMethod method = QuantileMethod::kLinear);
Array percentile(const Array& a, const Quantiles& q, const ReduceOptions& options,
                 QuantileMethod method = QuantileMethod::kLinear);

}  // namespace catena
