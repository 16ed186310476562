// Sums and means: one kernel forward, a broadcast view back.
#include "catena/functions/math/sum.h"

#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Sums over axes, or means.
template <bool kAverage>
struct Over {
  static constexpr const char* kName = kAverage ? "Mean" : "Sum";
  ReduceAxes axes;
  bool keepdims;
  Shape from, kept;   // the input's shape, and with extent 1 at the axes
  Dtype read, given;  // the input's dtype, and that of the result where it differs
  double scale = 1;   // of a mean

  Array forward(const Array& x) const {
    if (given == read)
      return kAverage ? catena::mean(x, axes, keepdims) : catena::sum(x, axes, keepdims);
    const ReduceOptions wide{
        .axes = axes.axes, .keepdims = keepdims || axes.keepdims, .dtype = given};
    return kAverage ? catena::mean(x, wide) : catena::sum(x, wide);
  }
  Array adjoint(const Array& gy) const {
    const Array g = scale == 1 ? gy : gy * scale;
    return (given == read ? g : g.astype(read)).reshape(kept).broadcast_to(from);
  }
};

template <bool kAverage>
Variable apply_sum(const VariableOperand& operand, const ReduceAxes& axes, bool keepdims) {
  using Map = Over<kAverage>;
  FunctionCall call(Map::kName, Autocast::kNone, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), axes.axes);
  const Shape kept = with_ones(x.shape(), normalize_axes(call.name(), axes.axes, x.ndim()));
  Map map{axes, keepdims, x.shape(), kept, x.dtype(), AutocastScope::of_sums(x.dtype())};
  if (kAverage && x.size() > 0) map.scale = double(element_count(kept)) / double(x.size());
  return linear_map(call, map);
}

// The sum down to a shape that broadcasts to the input's.
struct SumTo {
  static constexpr const char* kName = "SumTo";
  Shape from, to;
  Array forward(const Array& x) const { return catena::sum_to(x, to); }
  void forward(const Array& x, const Array& y, bool accumulate) const {
    sum_into(x, y, accumulate);
  }
  Array adjoint(const Array& gy) const { return gy.broadcast_to(from); }
};

}  // namespace

Variable sum(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_sum<false>(x, axes, keepdims);
}
Variable mean(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_sum<true>(x, axes, keepdims);
}
Variable sum_to(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable(SumTo::kName);
  if (x.shape() == shape) return x;
  FunctionCall call(SumTo::kName, Autocast::kNone, x);
  return linear_map(call, SumTo{x.shape(), shape});
}

}  // namespace catena::functions
