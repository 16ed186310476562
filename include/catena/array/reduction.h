// Reductions over axes. An empty axis list means all axes; keepdims leaves extent 1 in their place.
// Sums of 16- and 32-bit floats accumulate in float32 by blocks, of float64 in float64.
//
// sum, prod, mean, var, std, amax, amin, all, any, count_nonzero and the nan... functions take
// `where`, a bool array that broadcasts to the input (DtypeError, ShapeError): elements where it is
// false do not count. sum, prod, amax and amin take `initial`, one more element of every slice; it
// is the result where no element counts, so amax and amin with `where` need it (ValueError).
#pragma once

#include <optional>

#include "catena/array/array.h"

namespace catena {

// The arguments of a reduction by name: sum(a, {.axes = {0, 1}, .keepdims = true, .out = c}).
// Arrays left out are not given.
struct ReduceArgs {
  Axes axes = {};
  YesNo keepdims = false;
  std::optional<Dtype> dtype = {};
  Array out = {};
  Array where = {};
  std::optional<Scalar> initial = {};

  // The same referring to the arrays of this.
  ReduceOptions options() const {
    ReduceOptions result(axes, keepdims);
    result.dtype = dtype;
    result.out = out.defined() ? &out : nullptr;
    result.where = where.defined() ? &where : nullptr;
    result.initial = initial;
    return result;
  }
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
// Largest minus smallest; zero elements are a ValueError.
Array ptp(const Array& a, const ReduceOptions& options = {});
Array all(const Array& a, const ReduceOptions& options = {});
Array any(const Array& a, const ReduceOptions& options = {});
// int64 positions of the first extreme element (NaN counts as extreme); without an axis in the
// flattened array. Zero elements are a ValueError. `out`: an array of the shape of the result, or a
// dtype, to which the positions are cast: argmax(a, 1, false, Dtype::kInt32).
Array argmax(const Array& a, std::optional<int64_t> axis = {}, YesNo keepdims = false,
             const Out& out = {});
Array argmin(const Array& a, std::optional<int64_t> axis = {}, YesNo keepdims = false,
             const Out& out = {});
// How many elements are not 0 (NaN counts): the number (waits), or int64 counts over axes.
int64_t count_nonzero(const Array& a);
Array count_nonzero(const Array& a, const ReduceOptions& options);

// sum(a * weights) / sum(weights), of a float dtype. Weights have the shape of a, or are 1-d along
// the one reduced axis; all zero weights are a ValueError (one synchronisation).
Array average(const Array& a, const Array& weights, const ReduceOptions& options = {});
Array average(const Array& a, const ReduceOptions& options = {});  // mean

// The same leaving NaN out. An all-NaN mean, maximum or minimum is NaN; sums are 0, products 1.
Array nansum(const Array& a, const ReduceOptions& options = {});
Array nanprod(const Array& a, const ReduceOptions& options = {});
Array nanmean(const Array& a, const ReduceOptions& options = {});
Array nanmax(const Array& a, const ReduceOptions& options = {});
Array nanmin(const Array& a, const ReduceOptions& options = {});

// The forms with ReduceArgs. Templates, so that braces which fit both mean ReduceOptions.
#define CATENA_NAMED(name)                             \
  template <class = void>                              \
  Array name(const Array& a, const ReduceArgs& args) { \
    return name(a, args.options());                    \
  }
CATENA_NAMED(sum)
CATENA_NAMED(prod)
CATENA_NAMED(mean)
CATENA_NAMED(amax)
CATENA_NAMED(amin)
CATENA_NAMED(ptp)
CATENA_NAMED(all)
CATENA_NAMED(any)
CATENA_NAMED(count_nonzero)
CATENA_NAMED(nansum)
CATENA_NAMED(nanprod)
CATENA_NAMED(nanmean)
CATENA_NAMED(nanmax)
CATENA_NAMED(nanmin)
#undef CATENA_NAMED
template <class = void>
Array var(const Array& a, const ReduceArgs& args, int64_t ddof = 0) {
  return var(a, args.options(), ddof);
}
template <class = void>
Array std(const Array& a, const ReduceArgs& args, int64_t ddof = 0) {
  return std(a, args.options(), ddof);
}

// NumPy's amax(a, 1, True): one axis and keepdims.
#define CATENA_KEEPDIMS(name)                      \
  template <AxisNumber T, std::same_as<bool> B>    \
  Array name(const Array& a, T axis, B keepdims) { \
    return name(a, ReduceOptions(axis, keepdims)); \
  }
CATENA_KEEPDIMS(sum)
CATENA_KEEPDIMS(prod)
CATENA_KEEPDIMS(mean)
CATENA_KEEPDIMS(var)
CATENA_KEEPDIMS(std)
CATENA_KEEPDIMS(amax)
CATENA_KEEPDIMS(amin)
CATENA_KEEPDIMS(ptp)
CATENA_KEEPDIMS(all)
CATENA_KEEPDIMS(any)
CATENA_KEEPDIMS(count_nonzero)
CATENA_KEEPDIMS(average)
CATENA_KEEPDIMS(nansum)
CATENA_KEEPDIMS(nanprod)
CATENA_KEEPDIMS(nanmean)
CATENA_KEEPDIMS(nanmax)
CATENA_KEEPDIMS(nanmin)
#undef CATENA_KEEPDIMS

// a summed down to `shape`, the inverse of broadcasting; `a` itself when the shapes agree.
Array sum_to(const Array& a, const Shape& shape);

}  // namespace catena
