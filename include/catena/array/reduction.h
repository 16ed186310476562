// Reductions over axes. An empty axis list means all axes; keepdims leaves extent 1 in their place.
// Sums of 16- and 32-bit floats accumulate in float32 by blocks, of float64 in float64.
#pragma once

#include <optional>

#include "catena/array/array.h"

namespace catena {

// Integers and bool add up in int64 (uint64 for unsigned), floats in their own dtype.
Array sum(const Array& a, const ReduceOptions& options = {});
Array prod(const Array& a, const ReduceOptions& options = {});
// Integers and bool average in float64. An empty mean is NaN.
Array mean(const Array& a, const ReduceOptions& options = {});
Array var(const Array& a, const ReduceOptions& options = {}, int64_t ddof = 0);
Array std(const Array& a, const ReduceOptions& options = {}, int64_t ddof = 0);
// NaN wins. Zero elements are a ValueError.
Array amax(const Array& a, const ReduceOptions& options = {});
Array amin(const Array& a, const ReduceOptions& options = {});
// Largest minus smallest; zero elements are a ValueError.
Array ptp(const Array& a, const ReduceOptions& options = {});
Array all(const Array& a, const ReduceOptions& options = {});
Array any(const Array& a, const ReduceOptions& options = {});
// int64 positions of the first extreme element (NaN counts as extreme); without an axis in the
// flattened array. Zero elements are a ValueError.
Array argmax(const Array& a, std::optional<int64_t> axis = {}, bool keepdims = false);
Array argmin(const Array& a, std::optional<int64_t> axis = {}, bool keepdims = false);
int64_t count_nonzero(const Array& a);

// sum(a * weights) / sum(weights), of a float dtype. Weights have the shape of a, or are 1-d along
// the one reduced axis; all zero weights are a ValueError (one synchronisation).
Array average(const Array& a, const Array& weights, const ReduceOptions& options = {});
inline Array average(const Array& a, const ReduceOptions& options = {}) { return mean(a, options); }

// The same leaving NaN out. An all-NaN mean, maximum or minimum is NaN; sums are 0, products 1.
Array nansum(const Array& a, const ReduceOptions& options = {});
Array nanprod(const Array& a, const ReduceOptions& options = {});
Array nanmean(const Array& a, const ReduceOptions& options = {});
Array nanmax(const Array& a, const ReduceOptions& options = {});
Array nanmin(const Array& a, const ReduceOptions& options = {});

// a summed down to `shape`, the inverse of broadcasting; `a` itself when the shapes agree.
Array sum_to(const Array& a, const Shape& shape);

}  // namespace catena
