// Helpers of the implementations of functions: calls, type checks, writing gradients.
#pragma once

#include "catena/array/array.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/linear_map.h"
#include "catena/autograd/type_check.h"
#include "catena/autograd/variable.h"
#include "catena/core/config.h"
#include "catena/functions/math.h"
#include "catena/kernels/matmul.h"
#include "core/compute_dtype.h"
#include "functions/common/checks.h"

namespace catena::functions {

// Rows of the table that other functions use for their gradients: y > 0 ? gy : 0, and
// gy / (1 + exp(-x)).
Variable relu_grad(const VariableOperand& gy, const VariableOperand& y);
Variable softplus_grad(const VariableOperand& gy, const VariableOperand& x);

// The matrix or stack of matrices, or a copy, in a layout that kernels of products take.
Array matrix_operand(const Array& a);
// Product of two matrices (or stacks of equally many) into `output`, which must be contiguous or of
// BLAS layout; operands of other layouts are copied first.
void matmul_into(const Array& a, const Array& b, const Array& output, bool accumulate = false,
                 const Array* bias = nullptr, Activation activation = Activation::kNone);

// Whether kernels write sums of numbers of `from` as `to` without a cast: products and sums of
// 16-bit floats also come in float32.
inline bool sums_come_in(Dtype from, Dtype to) {
  return to == from || (to == Dtype::kFloat32 && is_narrow_float(from));
}

// First-order gradients straight into their destination where there is one. Not under create_graph.
// The gradient of input i is a @ b, viewed as `shape`.
void give_product(BackwardContext& context, int i, const Array& a, const Array& b,
                  const Shape& shape);
// y = x, or y += x, summed down to the shape of y.
void sum_into(const Array& x, const Array& y, bool accumulate);
// The gradient of input i is g summed down to `shape`.
void give_sum(BackwardContext& context, int i, const Array& g, const Shape& shape);
// The gradient of input i, of the given type on `like`'s device, is what write(array) fills in; the
// array is contiguous.
template <class Write>
void give(BackwardContext& context, int i, const Shape& shape, const Array& like, Write write) {
  const BackwardContext::Destination d = context.destination(i);
  if (d && !d.accumulate && d.array->is_contiguous() && d.array->dtype() == like.dtype()) {
    write(*d.array);
    context.written(i);
    return;
  }
  const Array g = Array::uninitialized(shape, like.dtype(), like.device());
  write(g);
  context.set_grad(i, Variable::constant(g));
}

// x as the (outer, extent, inner) view or copy that kernels along one axis take.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(const Shape& shape, int axis);
  Shape shape() const { return {outer, extent, inner}; }
  Array of(const Array& x) const { return x.contiguous().reshape(shape()); }
};

}  // namespace catena::functions
