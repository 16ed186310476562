#include "catena/array/linalg.h"

#include <algorithm>

#include "array/promotion.h"
#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/matmul.h"

namespace catena {
namespace {

// Whether BLAS takes the matrix without a copy: one axis has unit stride, and rows (or columns)
// do not overlap.
bool is_blas_layout(const Array& m) {
  const int n = m.ndim();
  const int64_t rows = m.shape()[n - 2], columns = m.shape()[n - 1], item = m.itemsize();
  const int64_t row_stride = m.strides()[n - 2], column_stride = m.strides()[n - 1];
  const bool row_major = (column_stride == item || columns == 1) && row_stride >= columns * item &&
                         row_stride % item == 0;
  const bool column_major = (row_stride == item || rows == 1) && column_stride >= rows * item &&
                            column_stride % item == 0;
  return row_major || column_major;
}

Array blas_operand(const Array& a, Dtype dtype) {
  const Array x = a.astype(dtype, false);
  return is_blas_layout(x) ? x : x.copy();
}

// Collapses leading axes into one batch axis without a copy where possible.
Array as_batch(const Array& a, const Shape& batch) {
  Shape full = batch;
  full.push_back(a.shape(-2));
  full.push_back(a.shape(-1));
  return a.broadcast_to(full).reshape({element_count(batch), a.shape(-2), a.shape(-1)});
}

// Throws unless `output` can receive a result of this shape and dtype.
void check_output(const Array& a, const Array& output, const Shape& shape, Dtype dtype) {
  CATENA_CHECK(ShapeError, output.shape() == shape, "the output has shape ", output.shape(),
               ", expected ", shape);
  check_same_device(a, output);
  check_writable(output);
  check_storable(dtype, output.dtype());
}

// Stores a result in the array of `out`, if there is one.
Array into(const Array& result, const Out& out) {
  if (out.array == nullptr) return result;
  check_output(result, *out.array, result.shape(), result.dtype());
  out.array->assign(result);
  return *out.array;
}

// The dtype of a product: out.dtype if given, else the promoted dtype.
Dtype product_dtype(const Array& a, const Array& b, const Out& out) {
  if (!out.dtype) return promote(a.dtype(), b.dtype());
  check_computable(a.dtype(), *out.dtype);
  check_computable(b.dtype(), *out.dtype);
  return *out.dtype;
}

Array run_matmul(const Array& a, const Array& b, const Shape& shape, Dtype dtype, const Out& out) {
  const EntryScope call("matmul");
  const bool direct = out.array && out.array->dtype() == dtype && out.array->is_contiguous() &&
                      !out.array->shares_memory_with(a) && !out.array->shares_memory_with(b);
  if (out.array) check_output(a, *out.array, shape, dtype);
  Array result = direct ? *out.array : Array::uninitialized(shape, dtype, a.device());
  if (result.size() > 0) {
    if (shape.ndim() == 2) {
      const Array x = blas_operand(a, dtype), y = blas_operand(b, dtype);
      kernels::matmul(a.device(), MatmulCall{&x, &y, &result});
    } else {
      const Shape batch(shape.begin(), shape.end() - 2);
      const Array x = blas_operand(as_batch(a, batch), dtype),
                  y = blas_operand(as_batch(b, batch), dtype);
      const Array z = result.reshape({-1, shape[shape.size() - 2], shape.back()});
      kernels::matmul(a.device(), MatmulCall{&x, &y, &z});
    }
  }
  if (direct)
    result.note_write();
  else if (out.array) {
    out.array->assign(result);
    return *out.array;
  }
  return result;
}

// matmul, shared by all functions that build on it.
Array product(const Array& a, const Array& b, const Out& out = {}) {
  refuse_mask(out);
  CATENA_CHECK(ShapeError, a.ndim() > 0 && b.ndim() > 0, "0-d operands are not allowed, got ",
               a.shape(), " and ", b.shape());
  check_same_device(a, b);
  const Array x = a.ndim() == 1 ? a.expand_dims(0) : a, y = b.ndim() == 1 ? b.expand_dims(1) : b;
  CATENA_CHECK(ShapeError, x.shape(-1) == y.shape(-2), a.shape(), " and ", b.shape(),
               " do not fit: the last axis of the first has extent ", x.shape(-1),
               ", the matching axis of the second ", y.shape(-2));
  Shape shape = broadcast_shapes(Shape(x.shape().begin(), x.shape().end() - 2),
                                 Shape(y.shape().begin(), y.shape().end() - 2));
  shape.push_back(x.shape(-2));
  shape.push_back(y.shape(-1));
  const Dtype dtype = product_dtype(a, b, out);
  if (a.ndim() > 1 && b.ndim() > 1) return run_matmul(x, y, shape, dtype, out);
  Array result = run_matmul(x, y, shape, dtype, Out());
  if (b.ndim() == 1) result = result.squeeze({-1});
  if (a.ndim() == 1) result = result.squeeze({b.ndim() == 1 ? int64_t{-1} : int64_t{-2}});
  return into(result, out);
}

// The axes of an array of this rank, negative ones resolved.
Axes positions(const Axes& axes, int ndim) {
  Axes result;
  for (const int64_t axis : axes) result.push_back(normalize_axis(axis, ndim));
  return result;
}

// tensordot, shared by all functions that build on it.
Array contract(const Array& a, const Array& b, const Axes& axes_a, const Axes& axes_b) {
  CATENA_CHECK(ValueError, axes_a.size() == axes_b.size(), axes_a.size(), " axes against ",
               axes_b.size());
  const Axes contracted_a = positions(axes_a, a.ndim()), contracted_b = positions(axes_b, b.ndim());
  Axes order_a, order_b;
  for (size_t i = 0; i < axes_a.size(); ++i) {
    CATENA_CHECK(ShapeError, a.shape()[contracted_a[i]] == b.shape()[contracted_b[i]], "axis ",
                 axes_a[i], " of ", a.shape(), " and axis ", axes_b[i], " of ", b.shape(),
                 " have different extents");
  }
  Shape result;
  int64_t inner = 1, rows = 1, columns = 1;
  auto contains = [](const Axes& list, int64_t v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  for (int i = 0; i < a.ndim(); ++i) {
    if (contains(contracted_a, i)) continue;
    order_a.push_back(i);
    result.push_back(a.shape()[i]);
    rows *= a.shape()[i];
  }
  order_b = contracted_b;
  for (int64_t axis : contracted_a) inner *= a.shape()[axis];
  order_a.insert(order_a.end(), contracted_a.begin(), contracted_a.end());
  for (int i = 0; i < b.ndim(); ++i) {
    if (contains(contracted_b, i)) continue;
    order_b.push_back(i);
    result.push_back(b.shape()[i]);
    columns *= b.shape()[i];
  }
  const Array x = (a.ndim() ? a.transpose(order_a) : a).reshape({rows, inner});
  const Array y = (b.ndim() ? b.transpose(order_b) : b).reshape({inner, columns});
  return product(x, y).reshape(result);
}

}  // namespace

Array matmul(const Array& a, const Array& b, const Out& out) {
  const EntryScope call("matmul");
  return product(a, b, out);
}

Array dot(const Array& a, const Array& b, const Out& out) {
  const EntryScope call("dot");
  refuse_mask(out);
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b, out);
  if ((a.ndim() <= 2 && b.ndim() <= 2) || b.ndim() == 1) return product(a, b, out);
  const Dtype dtype = product_dtype(a, b, out);
  return into(contract(a.astype(dtype, false), b.astype(dtype, false), Axes{-1}, Axes{-2}), out);
}

Array vdot(const Array& a, const Array& b) {
  const EntryScope call("vdot");
  CATENA_CHECK(ShapeError, a.size() == b.size(), a.shape(), " and ", b.shape(),
               " have different sizes");
  return product(a.ravel(), b.ravel());
}

Array inner(const Array& a, const Array& b) {
  const EntryScope call("inner");
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b);
  return contract(a, b, Axes{-1}, Axes{-1});
}

Array outer(const Array& a, const Array& b, const Out& out) {
  const EntryScope call("outer");
  return multiply(a.ravel().expand_dims(1), b.ravel().expand_dims(0), out);
}

Array kron(const Array& a, const Array& b) {
  const EntryScope call("kron");
  const int n = std::max(a.ndim(), b.ndim());
  Shape left, right, shape;  // (a0, 1, a1, 1, ...) times (1, b0, 1, b1, ...)
  for (int d = 0; d < n; ++d) {
    const int64_t x = d < n - a.ndim() ? 1 : a.shape(d - n),
                  y = d < n - b.ndim() ? 1 : b.shape(d - n);
    left.insert(left.end(), {x, 1});
    right.insert(right.end(), {1, y});
    shape.push_back(x * y);
  }
  return multiply(a.reshape(left), b.reshape(right)).reshape(shape);
}

Array tensordot(const Array& a, const Array& b, int64_t axes) {
  const EntryScope call("tensordot");
  CATENA_CHECK(ValueError, axes >= 0 && axes <= a.ndim() && axes <= b.ndim(), "cannot contract ",
               axes, " axes of ", a.shape(), " and ", b.shape());
  Axes last, first;
  for (int64_t i = 0; i < axes; ++i) {
    last.push_back(a.ndim() - axes + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

Array tensordot(const Array& a, const Array& b, const Axes& axes_a, const Axes& axes_b) {
  const EntryScope call("tensordot");
  return contract(a, b, axes_a, axes_b);
}

Array trace(const Array& a, int64_t offset, Axis axis1, Axis axis2, const Out& out) {
  const EntryScope call("trace");
  refuse_mask(out);
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "expected at least 2 axes, got ", a.shape());
  const Axes axes = positions(Axes{axis1, axis2}, a.ndim());
  CATENA_CHECK(ValueError, axes[0] != axes[1], "both axes are ", axes[0]);
  ReduceOptions options{.axes = -1, .dtype = out.dtype};
  if (out.array) options.out = *out.array;
  return sum(a.diagonal(offset, axis1, axis2), options);
}

}  // namespace catena
