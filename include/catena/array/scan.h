// Cumulative operations, positions of elements that are not zero, and counting, as NumPy.
//
// All dtypes and layouts; results are new contiguous arrays on the array's device unless said
// otherwise. A function whose result size depends on the elements waits once for a GPU, says so at
// its declaration, and is an Error that names it while a graph is captured; the others only
// enqueue.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// Running sums and products along an axis, or of the flattened array. Without a dtype: int64 for
// bool and signed integers, uint64 for unsigned ones, floats their own, or the dtype of `out` if it
// is wider; otherwise elements are converted to the dtype first. Integers wrap; bool is "or" and
// "and". A 0-d array gives one element. IndexError for an axis out of range. `out`: shape of the
// result; it is cast. Precision: float16 and bfloat16 add up in float32 and round each result once.
// float32 adds up in float64 on the CPU, in order; on GPUs float32 adds up in float32 by blocks
// (error of the order of log n roundings), whose order may differ from run to run unless
// config().deterministic. float64 is NumPy's result bit for bit on the CPU. Products of blocks may
// overflow on a GPU where the product in order would not.
Array cumsum(const Array& a, OptionalAxis axis = none, std::optional<Dtype> dtype = {},
             const Out& out = {});
Array cumprod(const Array& a, OptionalAxis axis = none, std::optional<Dtype> dtype = {},
              const Out& out = {});

// The n-th difference a[i+1] - a[i] along an axis (bool: not equal), after `prepend` and `append`,
// which have a's shape outside the axis or are 0-d or numbers (weak in promotion) and count as one
// element. n = 0 returns `a`.
// ShapeError for a 0-d array, ValueError for n < 0.
Array diff(const Array& a, int64_t n = 1, Axis axis = -1,
           const std::optional<Operand>& prepend = {}, const std::optional<Operand>& append = {});

// Positions of the elements that are not zero (NaN is not), in C order: one int64 array for each
// axis. ShapeError for a 0-d array (use atleast_1d). Waits once for a GPU; Error during capture.
std::vector<Array> nonzero(const Array& a);
// The same in the flattened array.
Array flatnonzero(const Array& a);
// The same as one (count, ndim) array, a transposed view as in NumPy. A 0-d array gives (0 or 1,
// 0).
Array argwhere(const Array& a);

// counts[i] = number of elements equal to i of a 1-d array of integers or bool; with weights (of
// the same length, converted to float64) the sum of their weights, float64. At least minlength
// long. ValueError for a negative element or minlength, ShapeError unless 1-d and of equal lengths,
// DtypeError for floats, OutOfMemoryError where there is no memory for a count of each number up to
// the largest element. Waits once for a GPU; Error during capture. Weights are added in no fixed
// order on GPUs unless config().deterministic.
Array bincount(const Array& x, const std::optional<Array>& weights = {}, int64_t minlength = 0);

// How histogram divides and weights.
struct HistogramOptions {
  // One weight for each element (shape of `a`): bins hold their sums, added up in float64 and cast
  // to the weights' dtype (bool: float64).
  std::optional<Array> weights = {};
  // float64 values whose integral over all bins is 1, in place of counts.
  bool density = false;
};
// Counts (int64) of the elements in `bins` equal bins of the range, and the bins + 1 edges. A bin
// holds its left edge, the last one both; elements outside and NaN are not counted. Edges are of
// a's dtype if that is a float, else float64. Without a range: from the smallest to the largest
// element (0 to 1 for no elements); then a GPU is waited for once, which is an Error during
// capture. A range of zero width is widened by 0.5 to both sides. ValueError unless bins >= 1, the
// range is finite and ascending, and the edges differ in their dtype.
std::pair<Array, Array> histogram(const Array& a, int64_t bins = 10,
                                  std::optional<std::pair<double, double>> range = {},
                                  const HistogramOptions& options = {});
// With the given 1-d ascending edges, which are returned; compared in the promoted dtype.
// ValueError when they decrease somewhere: waits once for a GPU to check; Error during capture.
std::pair<Array, Array> histogram(const Array& a, const Array& edges,
                                  const HistogramOptions& options = {});

}  // namespace catena
