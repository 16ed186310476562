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

// The arguments of a call: its options, or only axes and keepdims. Nothing is copied.
struct Request {
  Request(const ReduceOptions& options)
      : axes(options.axes), keepdims(options.keepdims), options(&options) {}
  Request(const ReduceAxes& over, bool keep) : axes(over.axes), keepdims(keep || over.keepdims) {}

  const Axes& axes;
  bool keepdims;
  const ReduceOptions* options = nullptr;

  Dtype dtype_or(Dtype natural) const {
    return options ? options->dtype.value_or(natural) : natural;
  }
  // The dtype of a sum, a product or a mean: that of `out` if it is wider and no other is given.
  Dtype accumulator_or(Dtype natural) const { return dtype_or(widened_by(natural, out())); }
  const Array* out() const { return options && options->out.given() ? &options->out : nullptr; }
  bool has_where() const { return options && options->where.given(); }
  bool needs_folding() const { return has_where() || (options && options->initial); }
};

// A new contiguous array under another shape; a view of it would cost a second description.
Array reshaped(const Array& fresh, const Shape& shape) {
  ArrayBody& body = *fresh.body();
  body.strides = contiguous_strides(shape, fresh.itemsize());
  body.shape = shape;
  return fresh;
}

Array reduce(ReduceOp op, const Array& a, const Request& asked, Dtype dtype, double divisor = 1) {
  const uint32_t mask = axis_mask(normalize_axes(asked.axes, a.ndim()));
  const Shape kept = reduced_shape(a.shape(), mask, true);
  const Shape wanted = asked.keepdims ? kept : reduced_shape(a.shape(), mask, false);
  const Array* const out = asked.out();
  Array target;
  if (out) {
    check_same_device(a, *out);
    check_writable(*out);
    CATENA_CHECK(ShapeError, out->shape() == wanted, "the output has shape ", out->shape(),
                 ", expected ", wanted);
    if (out->dtype() == dtype && !out->shares_memory_with(a)) target = out->reshape(kept);
  }
  const bool direct = target.defined() && target.storage() == out->storage();
  if (!direct) target = Array::uninitialized(kept, dtype, a.device());
  if (target.size() > 0 && a.size() == 0 && divisor == 0)
    target.fill(std::numeric_limits<double>::quiet_NaN());  // the mean of nothing
  else if (target.size() > 0)
    kernels::reduce(a.device(), ReduceCall{op, &a, &target, mask, divisor, false});
  if (!out) return asked.keepdims ? target : reshaped(target, wanted);
  if (direct)
    out->note_write();
  else
    out->assign(target.reshape(wanted));
  return *out;
}

Dtype sum_dtype(Dtype d) {
  if (is_float(d)) return d;
  return is_unsigned_int(d) ? Dtype::kUInt64 : Dtype::kInt64;
}

Dtype mean_dtype(Dtype d) { return is_float(d) ? d : Dtype::kFloat64; }

void require_elements(const Array& a, const Axes& axes) {
  const uint32_t mask = axis_mask(normalize_axes(axes, a.ndim()));
  CATENA_CHECK(ValueError, reduced_count(a.shape(), mask) > 0,
               "no elements along the reduced axes of shape ", a.shape());
}

Dtype spread_dtype(const Array& a, const ReduceOptions& options) {
  const Dtype dtype = Request(options).accumulator_or(mean_dtype(a.dtype()));
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype for the result, got ",
               dtype);
  return dtype;
}

// The dtype of intermediate arrays: float32 for 16-bit floats, which would lose digits or overflow.
Dtype unrounded(Dtype dtype) { return is_narrow_float(dtype) ? Dtype::kFloat32 : dtype; }

// How a reduction with `where` or `initial` is computed.
struct Folding {
  ReduceOp op;
  int identity;  // replaces the elements that the mask excludes
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

// The options without `where`, `initial` and `out`, which the caller applies.
ReduceOptions plain_options(const ReduceOptions& options) {
  return {.axes = options.axes, .keepdims = options.keepdims, .dtype = options.dtype};
}

bool is_extreme(ReduceOp op) { return op == ReduceOp::kMax || op == ReduceOp::kMin; }

Array fold(const Folding& f, const Array& a, const ReduceOptions& options, Dtype dtype) {
  CATENA_CHECK(ValueError, options.initial || !is_extreme(f.op),
               "a reduction with `where` needs `initial`, the result where no element counts");
  // Only the result is rounded to 16 bits: the sum without `initial` may be too large for them.
  const Dtype wide = is_float(dtype) && !is_extreme(f.op) ? unrounded(dtype) : dtype;
  const Array start = full({}, options.initial.value_or(f.identity), {wide, a.device()});
  Array x = a;
  if (options.where.given()) {
    const Array mask = checked_mask(a, options.where);
    x = is_extreme(f.op) ? where(mask, a.astype(dtype, false), start)
                         : where(mask, a, full({}, f.identity, {a.dtype(), a.device()}));
  }
  const ReduceOptions plain = plain_options(options);
  const uint32_t reduced = axis_mask(normalize_axes(options.axes, a.ndim()));
  const bool nothing = is_extreme(f.op) && reduced_count(a.shape(), reduced) == 0;
  const Shape shape = reduced_shape(a.shape(), reduced, options.keepdims);
  Array result = nothing ? start.broadcast_to(shape).copy() : reduce(f.op, x, plain, wide);
  if (options.initial && !nothing) result = f.combine(result, start, Out(wide));
  return result_into(result.astype(dtype, false), options.out);
}

// The number of elements that the mask selects, in a float dtype.
Array counted(const Array& a, const ReduceOptions& options, Dtype dtype) {
  ReduceOptions plain = plain_options(options);
  plain.dtype = dtype;
  return sum(checked_mask(a, options.where), plain);
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
  ReduceOptions inner{
      .axes = options.axes, .keepdims = true, .dtype = wide, .where = options.where};
  const Array deviation = subtract(a, masked_mean(a, inner, wide), Out(wide));
  inner.keepdims = options.keepdims;
  const Array count = maximum(subtract(counted(a, options, wide), ddof), 0);
  const Array result = divide(sum(square(deviation, deviation), inner), count);
  return result_into(result.astype(dtype, false), options.out);
}

// The mean of squared deviations from the mean, in two passes, rounded once.
Array variance(const Array& a, const ReduceOptions& options, int64_t ddof, Dtype dtype) {
  refuse_initial(options);
  if (options.where.given()) return masked_variance(a, options, ddof, dtype);
  const uint32_t mask = axis_mask(normalize_axes(options.axes, a.ndim()));
  const auto divisor = static_cast<double>(reduced_count(a.shape(), mask) - ddof);
  ReduceOptions inner = options;
  inner.keepdims = true;
  inner.dtype = unrounded(dtype);
  inner.out = {};
  const Array deviation = subtract(a, mean(a, inner), Out(*inner.dtype));
  if (*inner.dtype != dtype)
    return reduce(ReduceOp::kSum, square(deviation, deviation), options, dtype,
                  std::max(divisor, 0.0));
  const Array result = reduce(ReduceOp::kSumOfSquares, deviation, options, dtype);
  return divide(result, std::max(divisor, 0.0), result);
}

Array sum_of(const Array& a, const Request& asked) {
  const EntryScope call("sum");
  const Dtype dtype = asked.accumulator_or(sum_dtype(a.dtype()));
  if (asked.needs_folding()) return fold({ReduceOp::kSum, 0, add}, a, *asked.options, dtype);
  return reduce(ReduceOp::kSum, a, asked, dtype);
}

Array product_of(const Array& a, const Request& asked) {
  const EntryScope call("prod");
  const Dtype dtype = asked.accumulator_or(sum_dtype(a.dtype()));
  if (asked.needs_folding()) return fold({ReduceOp::kProd, 1, multiply}, a, *asked.options, dtype);
  return reduce(ReduceOp::kProd, a, asked, dtype);
}

Array mean_of(const Array& a, const Request& asked) {
  const EntryScope call("mean");
  const Dtype dtype = asked.accumulator_or(mean_dtype(a.dtype()));
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype for the result, got ",
               dtype);
  if (asked.options) refuse_initial(*asked.options);
  if (asked.has_where()) return masked_mean(a, *asked.options, dtype);
  const int64_t n = reduced_count(a.shape(), axis_mask(normalize_axes(asked.axes, a.ndim())));
  return reduce(ReduceOp::kSum, a, asked, dtype, static_cast<double>(n));
}

// The largest or the smallest elements.
Array extreme_of(bool largest, const Array& a, const Request& asked) {
  const EntryScope call(largest ? "amax" : "amin");
  const ReduceOp op = largest ? ReduceOp::kMax : ReduceOp::kMin;
  const Dtype dtype = asked.dtype_or(a.dtype());
  if (asked.needs_folding())
    return fold({op, 0, largest ? maximum : minimum}, a, *asked.options, dtype);
  require_elements(a, asked.axes);
  return reduce(op, a, asked, dtype);
}

// Whether all elements, or any, are true.
Array truth_of(bool every, const Array& a, const Request& asked) {
  const EntryScope call(every ? "all" : "any");
  const ReduceOp op = every ? ReduceOp::kAll : ReduceOp::kAny;
  if (asked.options) refuse_initial(*asked.options);
  if (asked.has_where()) return fold({op, every, nullptr}, a, *asked.options, Dtype::kBool);
  return reduce(op, a, asked, Dtype::kBool);
}

// Positions of the largest or the smallest elements.
Array positions_of(bool largest, const Array& a, const Request& asked) {
  const EntryScope call(largest ? "argmax" : "argmin");
  if (asked.options) refuse_mask(*asked.options);
  CATENA_CHECK(ValueError, asked.axes.size() <= 1, "takes one axis, got ", asked.axes.size());
  const bool flat = asked.axes.empty();
  const Array x = flat && a.ndim() != 1 ? a.ravel() : a;
  const int ax = flat ? 0 : normalize_axis(asked.axes[0], x.ndim());
  CATENA_CHECK(ValueError, x.shape()[ax] > 0, "no elements along axis ", ax, " of shape ",
               x.shape());
  Shape kept = x.shape();
  kept[ax] = 1;
  Array result = Array::uninitialized(kept, Dtype::kInt64, x.device());
  if (result.size() > 0) kernels::arg_reduce(x.device(), ArgReduceCall{largest, &x, ax, &result});
  if (flat)
    result = result.reshape(asked.keepdims ? Shape(size_t(a.ndim()), 1) : Shape{});
  else if (!asked.keepdims)
    result = result.squeeze(ax);
  if (const Array* out = asked.out()) return result_into(result, *out);
  return result.astype(asked.dtype_or(Dtype::kInt64), false);
}

}  // namespace

Array sum(const Array& a, const ReduceOptions& options) { return sum_of(a, options); }
Array sum(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return sum_of(a, {axes, keepdims});
}
Array prod(const Array& a, const ReduceOptions& options) { return product_of(a, options); }
Array prod(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return product_of(a, {axes, keepdims});
}
Array mean(const Array& a, const ReduceOptions& options) { return mean_of(a, options); }
Array mean(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return mean_of(a, {axes, keepdims});
}
Array amax(const Array& a, const ReduceOptions& options) { return extreme_of(true, a, options); }
Array amax(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return extreme_of(true, a, {axes, keepdims});
}
Array amin(const Array& a, const ReduceOptions& options) { return extreme_of(false, a, options); }
Array amin(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return extreme_of(false, a, {axes, keepdims});
}
Array all(const Array& a, const ReduceOptions& options) { return truth_of(true, a, options); }
Array all(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return truth_of(true, a, {axes, keepdims});
}
Array any(const Array& a, const ReduceOptions& options) { return truth_of(false, a, options); }
Array any(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return truth_of(false, a, {axes, keepdims});
}
Array argmax(const Array& a, const ReduceOptions& options) {
  return positions_of(true, a, options);
}
Array argmax(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return positions_of(true, a, {axes, keepdims});
}
Array argmin(const Array& a, const ReduceOptions& options) {
  return positions_of(false, a, options);
}
Array argmin(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return positions_of(false, a, {axes, keepdims});
}

Array var(const Array& a, const ReduceOptions& options, int64_t ddof) {
  const EntryScope call("var");
  return variance(a, options, ddof, spread_dtype(a, options));
}

Array std(const Array& a, const ReduceOptions& options, int64_t ddof) {
  const EntryScope call("std");
  const Dtype dtype = spread_dtype(a, options), wide = unrounded(dtype);
  ReduceOptions inner = options;
  inner.out = {};
  const Array v = variance(a, inner, ddof, wide);
  if (options.out.given()) {
    CATENA_CHECK(ShapeError, options.out.shape() == v.shape(), "the output has shape ",
                 options.out.shape(), ", the result has ", v.shape());
    return sqrt(v, options.out);
  }
  return sqrt(v, dtype == wide ? v : Array::uninitialized(v.shape(), dtype, v.device()));
}

Array ptp(const Array& a, const ReduceOptions& options) {
  const EntryScope call("ptp");
  refuse_mask(options);
  require_elements(a, options.axes);
  ReduceOptions plain = options;
  plain.out = {};
  const Array high = amax(a, plain);
  return options.out.given() ? subtract(high, amin(a, plain), options.out)
                             : subtract(high, amin(a, plain));
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

// The overloads that take only axes and keepdims.
Array var(const Array& a, const ReduceAxes& axes, YesNo keepdims, int64_t ddof) {
  return var(a, ReduceOptions::over(axes, keepdims), ddof);
}
Array std(const Array& a, const ReduceAxes& axes, YesNo keepdims, int64_t ddof) {
  return std(a, ReduceOptions::over(axes, keepdims), ddof);
}
Array ptp(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return ptp(a, ReduceOptions::over(axes, keepdims));
}
Array count_nonzero(const Array& a, const ReduceAxes& axes, YesNo keepdims) {
  return count_nonzero(a, ReduceOptions::over(axes, keepdims));
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
  return sum(a, {.axes = axes, .keepdims = true, .dtype = a.dtype()}).reshape(shape);
}

}  // namespace catena
