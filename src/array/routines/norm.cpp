// Norms of vectors and matrices.
#include <cmath>

#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"
#include "core/compute_dtype.h"

namespace catena::linalg {
namespace {

Array euclidean(const Array& x, const ReduceAxes& axes) { return sqrt(sum(square(x), axes)); }

Array vector_norm(const Array& x, double p, Axis axis, bool keepdims) {
  const ReduceAxes axes(axis, keepdims);
  if (p == 2) return euclidean(x, axes);
  const Array magnitude = absolute(x);
  if (std::isinf(p)) return p > 0 ? amax(magnitude, axes) : amin(magnitude, axes);
  if (p == 0) return sum(not_equal(x, 0), axes).astype(x.dtype());
  if (p == 1) return sum(magnitude, axes);
  return power(sum(power(magnitude, p), axes), 1 / p);
}

Array matrix_norm(const Array& x, double p, int64_t rows, int64_t columns, bool keepdims) {
  const bool by_column = std::abs(p) == 1;
  CATENA_CHECK(ValueError, by_column || std::isinf(p), "order ", p,
               " is not defined for a matrix; expected none, \"fro\", 1, -1 or an infinity");
  // keepdims, so that the number of the other axis stays valid.
  const Array sums = sum(absolute(x), by_column ? rows : columns, true);
  const ReduceAxes axes({rows, columns}, keepdims);
  return p > 0 ? amax(sums, axes) : amin(sums, axes);
}

}  // namespace

NormOrder::NormOrder(const char* name) : kind(kFrobenius) {
  const EntryScope call("linalg::norm");
  CATENA_CHECK(ValueError, std::string_view(name) == "fro", "unknown order '", name,
               "'; expected \"fro\" or a number");
}

namespace {

Array norm_of(const Array& x, const NormOrder& order, const AxisList& given, bool keepdims) {
  if (order.kind == NormOrder::kDefault) return euclidean(x, {given, keepdims});
  Axes axes = given;
  if (axes.empty()) {
    for (int d = 0; d < x.ndim(); ++d) axes.push_back(d);
  }
  for (int64_t& axis : axes) axis = normalize_axis(axis, x.ndim());
  CATENA_CHECK(ShapeError, axes.size() == 1 || axes.size() == 2,
               "an order needs one or two axes, got ", axes.size(), " of an array of shape ",
               x.shape());
  if (axes.size() == 2) {
    CATENA_CHECK(ValueError, axes[0] != axes[1], "axis ", axes[0], " is given twice");
    if (order.kind == NormOrder::kFrobenius) return euclidean(x, {axes, keepdims});
    return matrix_norm(x, order.p, axes[0], axes[1], keepdims);
  }
  CATENA_CHECK(ValueError, order.kind == NormOrder::kNumber,
               "\"fro\" is a norm of matrices, got one axis");
  return vector_norm(x, order.p, axes[0], keepdims);
}

}  // namespace

Array norm(const Array& a, const NormOrder& order, const AxisList& axes, YesNo keepdims) {
  const EntryScope call("linalg::norm");
  // Powers of 16-bit floats would overflow, so they are summed in float32.
  const Dtype dtype = is_float(a.dtype()) ? a.dtype() : Dtype::kFloat64;
  const Array x = a.astype(compute_dtype(dtype), false);
  return norm_of(x, order, axes, keepdims).astype(dtype, false);
}

}  // namespace catena::linalg
