// Reductions over axes. An empty axis list means all axes; keepdims leaves extent 1 in their place.
// Sums of 16- and 32-bit floats accumulate in float32 by blocks, of float64 in float64.
#pragma once

#include <optional>

#include "catena/array/array.h"

namespace catena {

struct ReduceOptions {
  Axes axes;  // empty: all
  bool keepdims = false;
  std::optional<Dtype> dtype;  // of the accumulation and the result
  const Array* out = nullptr;

  ReduceOptions() = default;
  ReduceOptions(int64_t axis, bool keep = false) : axes{axis}, keepdims(keep) {}
  ReduceOptions(Axes list, bool keep = false) : axes(std::move(list)), keepdims(keep) {}
};

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
Array all(const Array& a, const ReduceOptions& options = {});
Array any(const Array& a, const ReduceOptions& options = {});
// int64 positions of the first extreme element (NaN counts as extreme); without an axis in the
// flattened array. Zero elements are a ValueError.
Array argmax(const Array& a, std::optional<int64_t> axis = {}, bool keepdims = false);
Array argmin(const Array& a, std::optional<int64_t> axis = {}, bool keepdims = false);
int64_t count_nonzero(const Array& a);

// a summed down to `shape`, the inverse of broadcasting; `a` itself when the shapes agree.
Array sum_to(const Array& a, const Shape& shape);

}  // namespace catena
