// Weighted averages, and reductions that ignore NaN.
#include <limits>

#include "array/result_into.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"
#include "core/compute_dtype.h"

namespace catena {
namespace {

// Weights that broadcast against a.
Array spread_weights(const Array& a, const Array& weights, const ReduceOptions& options) {
  if (weights.shape() == a.shape()) return weights;
  CATENA_CHECK(ShapeError, options.axes.size() == 1 && weights.ndim() == 1, "weights of shape ",
               weights.shape(), " for an array of shape ", a.shape(),
               "; expected its shape, or 1-d weights and one axis");
  const int axis = normalize_axis(options.axes[0], a.ndim());
  CATENA_CHECK(ShapeError, weights.size() == a.shape()[size_t(axis)], weights.size(),
               " weights for axis ", axis, " of shape ", a.shape());
  Shape shape(size_t(a.ndim()), 1);
  shape[size_t(axis)] = weights.size();
  return weights.reshape(shape).broadcast_to(a.shape());
}

// `a` with NaN replaced by another number; `a` itself when its dtype has no NaN.
Array without_nan(const Array& a, const Scalar& replacement) {
  return is_float(a.dtype()) ? where(isnan(a), replacement, a) : a;
}

// The result, with NaN where every element along the axes is NaN.
Array mark_empty(const Array& a, const ReduceOptions& options, const Array& result) {
  ReduceOptions plain = options;
  plain.out = {};
  plain.dtype.reset();
  const Array empty = all(isnan(a), plain);
  const Array marked = where(empty, std::numeric_limits<double>::quiet_NaN(), result);
  return result_into(marked, options.out);
}

}  // namespace

Array average(const Array& a, const Array& weights, const ReduceOptions& options) {
  const EntryScope call("average");
  check_same_device(a, weights);
  refuse_mask(options);
  const Dtype own = is_float(a.dtype()) ? a.dtype() : Dtype::kFloat64;  // as in mean()
  Dtype dtype = options.dtype.value_or(promote(own, weights.dtype()));
  if (!is_float(dtype)) dtype = Dtype::kFloat64;
  const Dtype wide = compute_dtype(dtype);  // 16 bits would overflow before the division
  const Array w = spread_weights(a, weights, options).astype(wide, false);
  ReduceOptions plain = options;
  plain.out = {};
  plain.dtype = wide;
  const Array total = sum(w, plain);
  CATENA_CHECK(ValueError, total.size() == 0 || !any(equal(total, 0)).item<bool>(),
               "the weights sum to zero");
  const Array weighted = sum(multiply(a, w, Out(wide)), plain);
  return result_into(divide(weighted, total).astype(dtype, false), options.out);
}

Array average(const Array& a, const ReduceOptions& options) {
  const EntryScope call("average");
  return mean(a, options);
}

Array nansum(const Array& a, const ReduceOptions& options) {
  const EntryScope call("nansum");
  return sum(without_nan(a, 0), options);
}
Array nanprod(const Array& a, const ReduceOptions& options) {
  const EntryScope call("nanprod");
  return prod(without_nan(a, 1), options);
}

Array nanmax(const Array& a, const ReduceOptions& options) {
  const EntryScope call("nanmax");
  if (!is_float(a.dtype())) return amax(a, options);
  if (options.initial)
    return amax(without_nan(a, -std::numeric_limits<double>::infinity()), options);
  ReduceOptions plain = options;
  plain.out = {};
  return mark_empty(a, options,
                    amax(without_nan(a, -std::numeric_limits<double>::infinity()), plain));
}
Array nanmin(const Array& a, const ReduceOptions& options) {
  const EntryScope call("nanmin");
  if (!is_float(a.dtype())) return amin(a, options);
  if (options.initial)
    return amin(without_nan(a, std::numeric_limits<double>::infinity()), options);
  ReduceOptions plain = options;
  plain.out = {};
  return mark_empty(a, options,
                    amin(without_nan(a, std::numeric_limits<double>::infinity()), plain));
}

// The overloads that take only axes and keepdims.
Array average(const Array& a, const Array& weights, const ReduceAxes& axes, YesNo keepdims) {
  return average(a, weights, ReduceOptions::over(axes, keepdims));
}
Array average(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return average(a, ReduceOptions::over(axes, keepdims));
}
Array nansum(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return nansum(a, ReduceOptions::over(axes, keepdims));
}
Array nanprod(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return nanprod(a, ReduceOptions::over(axes, keepdims));
}
Array nanmax(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return nanmax(a, ReduceOptions::over(axes, keepdims));
}
Array nanmin(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return nanmin(a, ReduceOptions::over(axes, keepdims));
}

}  // namespace catena
