#include "functions/common/support.h"

#include "catena/array/reduction.h"
#include "catena/kernels/reduce.h"

namespace catena::functions {
namespace {

// What the matmul slot takes: one of the two last axes has unit stride, the other room for it.
bool is_matrix_layout(const Array& m) {
  const Shape& shape = m.shape();
  const Strides& strides = m.strides();
  const size_t row = shape.size() - 2, column = shape.size() - 1;
  const int64_t item = m.itemsize();
  const auto unit = [&](size_t a, size_t b) {
    return (strides[a] == item || shape[a] <= 1) && strides[b] >= shape[a] * item &&
           strides[b] % item == 0;
  };
  return unit(column, row) || unit(row, column);
}

}  // namespace

Array matrix_operand(const Array& a) { return is_matrix_layout(a) ? a : a.copy(); }

void matmul_into(const Array& a, const Array& b, const Array& output, bool accumulate,
                 const Array* bias, Activation activation) {
  if (output.size() == 0) return;
  const Array x = matrix_operand(a), y = matrix_operand(b);
  MatmulCall call;
  call.a = &x;
  call.b = &y;
  call.output = &output;
  call.bias = bias;
  call.activation = activation;
  call.accumulate = accumulate;
  kernels::matmul(output.device(), call);
}

void give_product(BackwardContext& context, int i, const Array& a, const Array& b,
                  const Shape& shape) {
  Shape product = a.shape();
  product.back() = b.shape().back();
  const BackwardContext::Destination d = context.wide_destination(i);
  if (d && d.array->is_contiguous() && sums_come_in(a.dtype(), d.array->dtype())) {
    matmul_into(a, b, d.array->reshape(product), d.accumulate);
    context.written(i);
    return;
  }
  const Array g = Array::uninitialized(product, a.dtype(), a.device());
  matmul_into(a, b, g);
  context.set_grad(i, Variable::constant(product == shape ? g : g.reshape(shape)));
}

void sum_into(const Array& x, const Array& y, bool accumulate) {
  if (!y.is_contiguous() || !sums_come_in(x.dtype(), y.dtype()) || y.size() == 0)
    return detail::assign_or_add(y, sum_to(x, y.shape()), accumulate);
  const int lead = x.ndim() - y.ndim();
  Shape kept(size_t(lead), 1);
  uint32_t axes = (1u << lead) - 1;
  for (int k = 0; k < y.ndim(); ++k) {
    const int64_t extent = y.shape()[size_t(k)];
    kept.push_back(extent);
    if (extent != x.shape()[size_t(lead + k)]) axes |= 1u << (lead + k);
  }
  const Array target = y.reshape(kept);
  kernels::reduce(x.device(), ReduceCall{ReduceOp::kSum, &x, &target, axes, 1.0, accumulate});
}

void give_sum(BackwardContext& context, int i, const Array& g, const Shape& shape) {
  const BackwardContext::Destination d = context.wide_destination(i);
  if (!d) return context.set_grad(i, Variable::constant(sum_to(g, shape)));
  sum_into(g, *d.array, d.accumulate);
  context.written(i);
}

AxisView::AxisView(const Shape& shape, int axis) : extent(shape[size_t(axis)]) {
  for (int i = 0; i < axis; ++i) outer *= shape[size_t(i)];
  for (int i = axis + 1; i < shape.ndim(); ++i) inner *= shape[size_t(i)];
}

}  // namespace catena::functions
