#include "catena/array/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/reduce.h"

namespace catena {
namespace {

uint32_t axis_mask(const Axes& axes) {
  uint32_t mask = 0;
  for (int64_t axis : axes) mask |= 1u << axis;
  return mask;
}

// Shape with extent 1 (or nothing) at the reduced axes.
Shape reduced_shape(const Shape& shape, uint32_t mask, bool keepdims) {
  Shape result;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!(mask >> i & 1))
      result.push_back(shape[i]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

int64_t reduced_count(const Shape& shape, uint32_t mask) {
  int64_t count = 1;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (mask >> i & 1) count *= shape[i];
  }
  return count;
}

Array reduce(ReduceOp op, const Array& a, const ReduceOptions& options, Dtype dtype,
             double scale = 1) {
  const uint32_t mask = axis_mask(normalize_axes(options.axes, a.ndim()));
  const Shape kept = reduced_shape(a.shape(), mask, true);
  const Shape wanted = options.keepdims ? kept : reduced_shape(a.shape(), mask, false);
  Array target;
  if (options.out) {
    check_same_device(a, *options.out);
    check_writable(*options.out);
    CATENA_CHECK(ShapeError, options.out->shape() == wanted, "the output has shape ",
                 options.out->shape(), ", expected ", wanted);
    if (options.out->dtype() == dtype && !options.out->shares_memory_with(a))
      target = options.out->reshape(kept);
  }
  const bool direct = target.defined() && target.storage() == options.out->storage();
  if (!direct) target = Array::uninitialized(kept, dtype, a.device());
  if (target.size() > 0 && a.size() == 0 && !std::isfinite(scale))
    target.fill(std::numeric_limits<double>::quiet_NaN());  // the mean of nothing
  else if (target.size() > 0)
    kernels::reduce(a.device(), ReduceCall{op, &a, &target, mask, scale, false});
  if (!options.out) return target.reshape(wanted);
  if (direct)
    options.out->note_write();
  else
    options.out->assign(target.reshape(wanted));
  return *options.out;
}

Dtype sum_dtype(Dtype d) {
  if (is_float(d)) return d;
  return is_unsigned_int(d) ? Dtype::kUInt64 : Dtype::kInt64;
}

Dtype mean_dtype(Dtype d) { return is_float(d) ? d : Dtype::kFloat64; }

void require_elements(const Array& a, const ReduceOptions& options) {
  const uint32_t mask = axis_mask(normalize_axes(options.axes, a.ndim()));
  CATENA_CHECK(ValueError, reduced_count(a.shape(), mask) > 0,
               "no elements along the reduced axes of shape ", a.shape());
}

Dtype spread_dtype(const Array& a, const ReduceOptions& options) {
  const Dtype dtype = options.dtype.value_or(mean_dtype(a.dtype()));
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype for the result, got ",
               dtype);
  return dtype;
}

// What intermediate arrays of a result are kept in: 16-bit floats would lose digits and overflow.
Dtype unrounded(Dtype dtype) { return itemsize(dtype) == 2 ? Dtype::kFloat32 : dtype; }

// How a reduction with `where` or `initial` is put together.
struct Folding {
  ReduceOp op;
  int identity;  // what stands in for the elements left out
  Array (*combine)(const Operand&, const Operand&, const Out&);
};

// The mask in the shape of a.
Array checked_mask(const Array& a, const Array& mask) {
  CATENA_CHECK(DtypeError, mask.dtype() == Dtype::kBool, "expected a bool array as `where`, got ",
               mask.dtype());
  check_same_device(a, mask);
  CATENA_CHECK(ShapeError, broadcast_shapes(a.shape(), mask.shape()) == a.shape(),
               "a `where` of shape ", mask.shape(), " does not broadcast to the input of shape ",
               a.shape());
  return mask.broadcast_to(a.shape());
}

// The options without what was dealt with already.
ReduceOptions plain_options(const ReduceOptions& options) {
  ReduceOptions plain(options.axes, options.keepdims);
  plain.dtype = options.dtype;
  return plain;
}

bool is_extreme(ReduceOp op) { return op == ReduceOp::kMax || op == ReduceOp::kMin; }

Array fold(const Folding& f, const Array& a, const ReduceOptions& options, Dtype dtype) {
  CATENA_CHECK(ValueError, options.initial || !is_extreme(f.op),
               "a reduction with `where` needs `initial`, the result where no element counts");
  const Array start = full({}, options.initial.value_or(f.identity), {dtype, a.device()});
  Array x = a;
  if (options.where) {
    const Array mask = checked_mask(a, *options.where);
    x = is_extreme(f.op) ? where(mask, a.astype(dtype, false), start)
                         : where(mask, a, full({}, f.identity, {a.dtype(), a.device()}));
  }
  const ReduceOptions plain = plain_options(options);
  const uint32_t reduced = axis_mask(normalize_axes(options.axes, a.ndim()));
  const bool nothing = is_extreme(f.op) && reduced_count(a.shape(), reduced) == 0;
  const Shape shape = reduced_shape(a.shape(), reduced, options.keepdims);
  Array result = nothing ? start.broadcast_to(shape).copy() : reduce(f.op, x, plain, dtype);
  if (options.initial && !nothing) result = f.combine(result, start, Out(dtype));
  return result_into(result, options.out);
}

bool needs_folding(const ReduceOptions& options) { return options.where || options.initial; }

// How many elements the mask leaves, as numbers of a float dtype.
Array counted(const Array& a, const ReduceOptions& options, Dtype dtype) {
  ReduceOptions plain = plain_options(options);
  plain.dtype = dtype;
  return sum(checked_mask(a, *options.where), plain);
}

Array masked_mean(const Array& a, const ReduceOptions& options, Dtype dtype) {
  const Dtype wide = unrounded(dtype);
  ReduceOptions inner = plain_options(options);
  inner.where = options.where;
  inner.dtype = wide;
  const Array mean = divide(sum(a, inner), counted(a, options, wide));
  return result_into(mean.astype(dtype, false), options.out);
}

Array masked_variance(const Array& a, const ReduceOptions& options, int64_t ddof, Dtype dtype) {
  const Dtype wide = unrounded(dtype);
  ReduceOptions inner(options.axes, true);
  inner.where = options.where;
  inner.dtype = wide;
  const Array deviation = subtract(a, masked_mean(a, inner, wide), Out(wide));
  inner.keepdims = options.keepdims;
  const Array count = maximum(subtract(counted(a, options, wide), ddof), 0);
  const Array result = divide(sum(square(deviation, deviation), inner), count);
  return result_into(result.astype(dtype, false), options.out);
}

// The mean of squared deviations from the mean, in two passes, rounded once.
Array variance(const Array& a, const ReduceOptions& options, int64_t ddof, Dtype dtype) {
  refuse_initial(options);
  if (options.where) return masked_variance(a, options, ddof, dtype);
  const uint32_t mask = axis_mask(normalize_axes(options.axes, a.ndim()));
  const auto divisor = static_cast<double>(reduced_count(a.shape(), mask) - ddof);
  ReduceOptions inner = options;
  inner.keepdims = true;
  inner.dtype = unrounded(dtype);
  inner.out = nullptr;
  const Array deviation = subtract(a, mean(a, inner), Out(*inner.dtype));
  if (*inner.dtype != dtype)
    return reduce(ReduceOp::kSum, square(deviation, deviation), options, dtype,
                  1 / std::max(divisor, 0.0));
  const Array result = reduce(ReduceOp::kSumOfSquares, deviation, options, dtype);
  return divide(result, std::max(divisor, 0.0), result);
}

Array arg_reduce(bool maximum, const Array& a, std::optional<int64_t> axis, bool keepdims,
                 const Array* out) {
  const Array x = axis || a.ndim() == 1 ? a : a.ravel();
  CATENA_CHECK(ShapeError, x.ndim() > 0, "a 0-d array has no axis");
  const int ax = axis ? normalize_axis(*axis, x.ndim()) : 0;
  CATENA_CHECK(ValueError, x.shape()[ax] > 0, "no elements along axis ", ax, " of shape ",
               x.shape());
  Shape kept = x.shape();
  kept[ax] = 1;
  Array result = Array::uninitialized(kept, Dtype::kInt64, x.device());
  if (result.size() > 0) kernels::arg_reduce(x.device(), ArgReduceCall{maximum, &x, ax, &result});
  if (!axis)
    result = result.reshape(keepdims ? Shape(size_t(a.ndim()), 1) : Shape{});
  else if (!keepdims)
    result = result.squeeze({ax});
  return result_into(result, out);
}

Array arg_reduce(bool maximum, const Array& a, std::optional<int64_t> axis, bool keepdims,
                 const Out& out) {
  refuse_mask(out);
  const Array result = arg_reduce(maximum, a, axis, keepdims, out.array);
  return out.dtype && out.array == nullptr ? result.astype(*out.dtype, false) : result;
}

}  // namespace

Array sum(const Array& a, const ReduceOptions& options) {
  const EntryScope call("sum");
  const Dtype dtype = options.dtype.value_or(sum_dtype(a.dtype()));
  if (needs_folding(options)) return fold({ReduceOp::kSum, 0, add}, a, options, dtype);
  return reduce(ReduceOp::kSum, a, options, dtype);
}

Array prod(const Array& a, const ReduceOptions& options) {
  const EntryScope call("prod");
  const Dtype dtype = options.dtype.value_or(sum_dtype(a.dtype()));
  if (needs_folding(options)) return fold({ReduceOp::kProd, 1, multiply}, a, options, dtype);
  return reduce(ReduceOp::kProd, a, options, dtype);
}

Array mean(const Array& a, const ReduceOptions& options) {
  const EntryScope call("mean");
  const Dtype dtype = options.dtype.value_or(mean_dtype(a.dtype()));
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype for the result, got ",
               dtype);
  refuse_initial(options);
  if (options.where) return masked_mean(a, options, dtype);
  const int64_t n = reduced_count(a.shape(), axis_mask(normalize_axes(options.axes, a.ndim())));
  return reduce(ReduceOp::kSum, a, options, dtype,
                n ? 1.0 / static_cast<double>(n) : std::numeric_limits<double>::quiet_NaN());
}

Array var(const Array& a, const ReduceOptions& options, int64_t ddof) {
  const EntryScope call("var");
  return variance(a, options, ddof, spread_dtype(a, options));
}

Array std(const Array& a, const ReduceOptions& options, int64_t ddof) {
  const EntryScope call("std");
  const Dtype dtype = spread_dtype(a, options), wide = unrounded(dtype);
  ReduceOptions inner = options;
  inner.out = nullptr;
  const Array v = variance(a, inner, ddof, wide);
  if (options.out) {
    CATENA_CHECK(ShapeError, options.out->shape() == v.shape(), "the output has shape ",
                 options.out->shape(), ", the result has ", v.shape());
    return sqrt(v, *options.out);
  }
  return sqrt(v, dtype == wide ? v : Array::uninitialized(v.shape(), dtype, v.device()));
}

Array amax(const Array& a, const ReduceOptions& options) {
  const EntryScope call("amax");
  const Dtype dtype = options.dtype.value_or(a.dtype());
  if (needs_folding(options)) return fold({ReduceOp::kMax, 0, maximum}, a, options, dtype);
  require_elements(a, options);
  return reduce(ReduceOp::kMax, a, options, dtype);
}

Array amin(const Array& a, const ReduceOptions& options) {
  const EntryScope call("amin");
  const Dtype dtype = options.dtype.value_or(a.dtype());
  if (needs_folding(options)) return fold({ReduceOp::kMin, 0, minimum}, a, options, dtype);
  require_elements(a, options);
  return reduce(ReduceOp::kMin, a, options, dtype);
}

Array ptp(const Array& a, const ReduceOptions& options) {
  const EntryScope call("ptp");
  refuse_mask(options);
  require_elements(a, options);
  ReduceOptions plain = options;
  plain.out = nullptr;
  const Array high = amax(a, plain);
  return options.out ? subtract(high, amin(a, plain), *options.out)
                     : subtract(high, amin(a, plain));
}

Array all(const Array& a, const ReduceOptions& options) {
  const EntryScope call("all");
  refuse_initial(options);
  if (options.where) return fold({ReduceOp::kAll, 1, nullptr}, a, options, Dtype::kBool);
  return reduce(ReduceOp::kAll, a, options, Dtype::kBool);
}
Array any(const Array& a, const ReduceOptions& options) {
  const EntryScope call("any");
  refuse_initial(options);
  if (options.where) return fold({ReduceOp::kAny, 0, nullptr}, a, options, Dtype::kBool);
  return reduce(ReduceOp::kAny, a, options, Dtype::kBool);
}

Array argmax(const Array& a, std::optional<int64_t> axis, YesNo keepdims, const Out& out) {
  const EntryScope call("argmax");
  return arg_reduce(true, a, axis, keepdims, out);
}
Array argmin(const Array& a, std::optional<int64_t> axis, YesNo keepdims, const Out& out) {
  const EntryScope call("argmin");
  return arg_reduce(false, a, axis, keepdims, out);
}

int64_t count_nonzero(const Array& a) {
  const EntryScope call("count_nonzero");
  return sum(not_equal(a, 0)).item<int64_t>();
}
Array count_nonzero(const Array& a, const ReduceOptions& options) {
  const EntryScope call("count_nonzero");
  refuse_initial(options);
  ReduceOptions counting = options;
  counting.dtype = Dtype::kInt64;
  return sum(not_equal(a, 0), counting);
}

Array sum_to(const Array& a, const Shape& shape) {
  const EntryScope call("sum_to");
  if (a.shape() == shape) return a;
  const int lead = a.ndim() - shape.ndim();
  CATENA_CHECK(ShapeError, lead >= 0, a.shape(), " has fewer axes than ", shape);
  Axes axes;
  for (int i = 0; i < a.ndim(); ++i) {
    const int64_t to = i < lead ? 1 : shape[i - lead];
    CATENA_CHECK(ShapeError, i < lead || to == 1 || to == a.shape()[i], a.shape(),
                 " does not sum to ", shape);
    if (i < lead || (to == 1 && a.shape()[i] != 1)) axes.push_back(i);
  }
  if (axes.empty()) return a.reshape(shape);
  ReduceOptions options(axes, true);
  options.dtype = a.dtype();
  return sum(a, options).reshape(shape);
}

}  // namespace catena
