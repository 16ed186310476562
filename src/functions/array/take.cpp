// take and take_along_axis: linear maps of x that depend on positions.
#include "catena/functions/array/take.h"

#include <limits>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/core/entry_scope.h"
#include "catena/functions/array/reshape.h"
#include "catena/kernels/index.h"
#include "functions/common/along_axis.h"
#include "functions/common/axes.h"
#include "functions/common/indexed_map.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Slices of the extent along an axis by position; those that are out of range are NaN.
struct Take {
  static constexpr const char* kName = "Take";
  Array positions;  // contiguous int64; none counts from the end
  Shape from, to;
  AxisView view;  // of the input

  Array forward(const Array& x) const {
    const Array y = Array::uninitialized(to, x.dtype(), x.device());
    if (y.size() > 0)
      kernels::take(x.device(), {view.of(x), positions.reshape({positions.size()}),
                                 static_cast<uint8_t>(0), y.reshape(taken()), IdRule{true, {}}});
    return y;
  }
  void adjoint(const Array& gy, const Array& gx, bool accumulate) const {
    if (gx.size() == 0) return;
    const bool direct = gx.is_contiguous();
    const Array sums = direct ? gx : Array::uninitialized(gx.shape(), gx.dtype(), gx.device());
    kernels::scatter_add(
        gx.device(), {sums.reshape(view.shape()), positions.reshape({positions.size()}),
                      gy.contiguous().reshape(taken()), direct && accumulate, IdRule{true, {}}});
    if (!direct) detail::assign_or_add(gx, sums, accumulate);
  }

 private:
  Shape taken() const { return {view.outer, positions.size(), view.inner}; }
};

// One element of each line of the input along an axis for each position.
struct TakeAlongAxis {
  static constexpr const char* kName = "TakeAlongAxis";
  Array positions;  // int64 with the axes of x, none counts from the end
  Array outside;    // bool: which are out of range; null where that is an error
  Shape from;
  int axis;

  Array forward(const Array& x) const {
    const Array y = pick_along_axis(x, positions, axis);
    return outside.defined() ? catena::where(outside, std::numeric_limits<double>::quiet_NaN(), y)
                             : y;
  }
  Array adjoint(const Array& gy) const {
    const Array gx = zeros(from, {gy.dtype(), gy.device()});
    if (gx.size() == 0 || gy.size() == 0) return gx;
    const std::vector<AnyIndex> places = along_axis(from, positions, axis);
    index_add(gx, std::span<const AnyIndex>(places),
              outside.defined() ? catena::where(outside, 0.0, gy) : gy, OutOfRange::kClip);
    return gx;
  }
};

void check_take(const FunctionCall& call) {
  const TypeOf in(call[0].data(), "x"), indices(call[1].data(), "indices");
  const auto checks = Checks(call.named(), in, indices).advised([] {
    return "Positions are integers: convert them with .astype(dtype::int32).";
  });
  if (!is_unsigned_int(call[1].dtype())) checks.require(indices.kind() == 'i');
  call.require_one_device();
}

// As int64. No axis has the positions that int64 does not hold.
Array as_int64(const Array& indices) {
  if (indices.dtype() != Dtype::kUInt64) return indices.astype(Dtype::kInt64, false);
  return catena::minimum(indices, std::numeric_limits<int64_t>::max()).astype(Dtype::kInt64);
}

// Positions as int64 of which none counts from the end: a copy. IndexError on a CPU.
Array positions_of(const FunctionCall& call, const Array& indices, int64_t extent, int axis) {
  const Array given = as_int64(indices).contiguous();
  if (given.device().is_cpu()) {
    const int64_t* p = given.data<int64_t>();
    for (int64_t i = 0; i < given.size(); ++i)
      CATENA_CHECK(IndexError, p[i] >= -extent && p[i] < extent, call.label(), ": position ", p[i],
                   " is out of bounds for axis ", axis, " of extent ", extent);
  }
  return catena::where(less(given, 0), given + extent, given).contiguous();
}

// Outside of the axis an extent is that of x, or one of both is 1.
void check_lines(const FunctionCall& call, int axis) {
  const Shape &x = call[0].shape(), &positions = call[1].shape();
  for (int d = 0; d < x.ndim(); ++d) {
    const int64_t extent = x[size_t(d)], given = positions[size_t(d)];
    CATENA_CHECK(ShapeError, d == axis || given == extent || given == 1 || extent == 1,
                 call.label(), ": positions of shape ", positions, " for a variable of shape ", x,
                 " along axis ", axis, "; expected ", extent, ", or 1, as their extent of axis ",
                 d);
  }
}

}  // namespace

Variable take(const VariableOperand& x_operand, const VariableOperand& indices, OptionalAxis axis) {
  FunctionCall call(Take::kName, Autocast::kNone, x_operand, indices);
  check_take(call);
  if (!axis) return take(reshape(call[0], {call[0].size()}), call[1], 0);
  const Variable& x = call[0];
  const TypeOf in(x.data(), "x");
  require_axis(call, in, *axis);
  const int a = normalize_axis(call.name(), *axis, x.ndim());
  Shape to = x.shape();
  to.erase(to.begin() + a);
  const Shape& chosen = call[1].shape();
  to.insert(to.begin() + a, chosen.begin(), chosen.end());
  const AxisView view(x.shape(), a);
  const Take map{positions_of(call, call[1].data(), view.extent, a), x.shape(), to, view};
  return indexed_map(call, map, 0, 1, map.positions);
}

Variable take_along_axis(const VariableOperand& x_operand, const VariableOperand& indices,
                         Axis axis) {
  FunctionCall call(TakeAlongAxis::kName, Autocast::kNone, x_operand, indices);
  check_take(call);
  const Variable& x = call[0];
  const TypeOf in(x.data(), "x");
  require_axis(call, in, axis);
  const int a = normalize_axis(call.name(), axis, x.ndim());
  const int64_t extent = x.shape()[size_t(a)];
  CATENA_CHECK(ShapeError, call[1].ndim() == x.ndim(), call.label(), ": positions of shape ",
               call[1].shape(), " for a variable of shape ", x.shape(), "; expected as many axes");
  check_lines(call, a);
  TakeAlongAxis map{positions_of(call, call[1].data(), extent, a), {}, x.shape(), a};
  if (!x.device().is_cpu())
    map.outside = logical_or(less(map.positions, 0), greater_equal(map.positions, extent));
  return indexed_map(call, map, 0, 1, map.positions);
}

}  // namespace catena::functions
