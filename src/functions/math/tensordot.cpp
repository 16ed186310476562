// dot, inner, vdot, outer, kron and tensordot: products of matrices made of the operands, or of
// their elements.
#include "catena/functions/math/tensordot.h"

#include <algorithm>

#include "catena/functions/array/reshape.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/matmul.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

void check_operands(const FunctionCall& call) {
  const TypeOf a(call[0].data(), "a"), b(call[1].data(), "b");
  const Checks checks(call.named(), a, b);
  checks.require_float(a);
  checks.require_float(b);
  checks.advised([&] { return dtype_advice(call[0].data(), call[1].data()); })
      .require(b.dtype() == a.dtype());
  call.require_one_device();
}

// Not negative, none twice.
Axes checked_list(const FunctionCall& call, const Axes& given, int ndim) {
  Axes axes;
  for (const int64_t axis : given) {
    const int a = normalize_axis(call.name(), axis, ndim);
    CATENA_CHECK(ValueError, std::find(axes.begin(), axes.end(), a) == axes.end(), call.label(),
                 ": an axis is given twice in ", given);
    axes.push_back(a);
  }
  return axes;
}

// The axes of an operand that stay, and their extents.
struct KeptAxes {
  Axes axes;
  Shape shape;
  int64_t size = 1;
  KeptAxes(const Shape& all, const Axes& summed) {
    for (int i = 0; i < all.ndim(); ++i) {
      if (std::find(summed.begin(), summed.end(), i) != summed.end()) continue;
      axes.push_back(i);
      shape.push_back(all[size_t(i)]);
      size *= all[size_t(i)];
    }
  }
};

// The axes of `first`, then those of `second`, as two axes.
Variable two_axes(const Variable& x, const Axes& first, const Axes& second, const Shape& shape) {
  Axes order = first;
  order.insert(order.end(), second.begin(), second.end());
  const bool moved = !std::is_sorted(order.begin(), order.end());
  return reshape(moved ? transpose(x, order) : x, shape);
}

// Sums of products over pairs of axes; ends the checks of a call.
Variable contracted(const FunctionCall& call, const Axes& given_a, const Axes& given_b) {
  const Variable &a = call[0], &b = call[1];
  CATENA_CHECK(ValueError, given_a.size() == given_b.size(), call.label(), ": ", given_a.size(),
               " axes of a against ", given_b.size(), " of b; expected as many of both");
  const Axes axes_a = checked_list(call, given_a, a.ndim()),
             axes_b = checked_list(call, given_b, b.ndim());
  int64_t summed = 1;
  for (size_t i = 0; i < axes_a.size(); ++i) {
    const int64_t extent = a.shape()[size_t(axes_a[i])];
    CATENA_CHECK(ShapeError, extent == b.shape()[size_t(axes_b[i])], call.label(), ": axis ",
                 axes_a[i], " of a, ", a.shape(), ", and axis ", axes_b[i], " of b, ", b.shape(),
                 ", are summed together and have different extents");
    summed *= extent;
  }
  const KeptAxes rows(a.shape(), axes_a), columns(b.shape(), axes_b);
  Shape result = rows.shape;
  result.insert(result.end(), columns.shape.begin(), columns.shape.end());
  return reshape(matmul(two_axes(a, rows.axes, axes_a, {rows.size, summed}),
                        two_axes(b, axes_b, columns.axes, {summed, columns.size})),
                 result);
}

bool has_number(const FunctionCall& call) { return call[0].ndim() == 0 || call[1].ndim() == 0; }

}  // namespace

Variable dot(const VariableOperand& a, const VariableOperand& b) {
  FunctionCall call("Dot", Autocast::kLow, a, b);
  check_operands(call);
  if (has_number(call)) return call[0] * call[1];
  return contracted(call, {-1}, {call[1].ndim() == 1 ? -1 : -2});
}

Variable inner(const VariableOperand& a, const VariableOperand& b) {
  FunctionCall call("Inner", Autocast::kLow, a, b);
  check_operands(call);
  if (has_number(call)) return call[0] * call[1];
  return contracted(call, {-1}, {-1});
}

Variable vdot(const VariableOperand& a, const VariableOperand& b) {
  FunctionCall call("Vdot", Autocast::kLow, a, b);
  check_operands(call);
  const Variable &x = call[0], &y = call[1];
  CATENA_CHECK(ShapeError, x.size() == y.size(), call.label(), ": ", x.shape(), " and ", y.shape(),
               " have different sizes");
  return reshape(matmul(reshape(x, {1, x.size()}), reshape(y, {y.size(), 1})), {});
}

Variable outer(const VariableOperand& a, const VariableOperand& b) {
  FunctionCall call("Outer", Autocast::kLow, a, b);
  check_operands(call);
  return reshape(call[0], {call[0].size(), 1}) * reshape(call[1], {1, call[1].size()});
}

Variable kron(const VariableOperand& a, const VariableOperand& b) {
  FunctionCall call("Kron", Autocast::kLow, a, b);
  check_operands(call);
  const Variable &x = call[0], &y = call[1];
  const int n = std::max(x.ndim(), y.ndim());
  CATENA_CHECK(ShapeError, 2 * n <= kMaxDims, call.label(), ": operands of shape ", x.shape(),
               " and ", y.shape(), "; expected at most ", kMaxDims / 2, " axes");
  const auto extent = [n](const Variable& v, int axis) {
    const int missing = n - v.ndim();
    return axis < missing ? 1 : v.shape()[size_t(axis - missing)];
  };
  Shape left, right, shape;  // (a0, 1, a1, 1, ...) times (1, b0, 1, b1, ...)
  for (int d = 0; d < n; ++d) {
    const int64_t of_x = extent(x, d), of_y = extent(y, d);
    left.insert(left.end(), {of_x, 1});
    right.insert(right.end(), {1, of_y});
    shape.push_back(of_x * of_y);
  }
  return reshape(reshape(x, left) * reshape(y, right), shape);
}

Variable tensordot(const VariableOperand& a, const VariableOperand& b, int64_t axes) {
  FunctionCall call("Tensordot", Autocast::kLow, a, b);
  check_operands(call);
  const Variable &x = call[0], &y = call[1];
  CATENA_CHECK(ValueError, axes >= 0 && axes <= x.ndim() && axes <= y.ndim(), call.label(),
               ": cannot sum over ", axes, " axes of ", x.shape(), " and ", y.shape());
  Axes last, first;
  for (int64_t i = 0; i < axes; ++i) {
    last.push_back(x.ndim() - axes + i);
    first.push_back(i);
  }
  return contracted(call, last, first);
}

Variable tensordot(const VariableOperand& a, const VariableOperand& b, const Axes& axes_a,
                   const Axes& axes_b) {
  FunctionCall call("Tensordot", Autocast::kLow, a, b);
  check_operands(call);
  return contracted(call, axes_a, axes_b);
}

}  // namespace catena::functions
