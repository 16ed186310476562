// The methods of Variable that are functions: declared with the class, for autograd knows no
// function.
#include "catena/functions/array.h"

namespace catena {
namespace {

// Refers to the array of `bound`.
VariableOperand as_operand(const Operand& bound) {
  if (bound.array()) return VariableOperand(*bound.array());
  return VariableOperand(bound.scalar());
}

}  // namespace

namespace F = functions;

Variable Variable::at(std::span<const Index> indices) const { return F::get_item(*this, indices); }
Variable Variable::reshape(const Shape& shape) const { return F::reshape(*this, shape); }
Variable Variable::transpose(const Axes& axes) const { return F::transpose(*this, axes); }
Variable Variable::swapaxes(Axis axis1, Axis axis2) const {
  return F::swapaxes(*this, axis1, axis2);
}
Variable Variable::squeeze(const AxisList& axes) const { return F::squeeze(*this, axes); }
Variable Variable::expand_dims(Axis axis) const { return F::expand_dims(*this, axis); }
Variable Variable::broadcast_to(const Shape& shape) const { return F::broadcast_to(*this, shape); }
Variable Variable::astype(Dtype dtype) const { return F::cast(*this, dtype); }
Variable Variable::to(Device device) const { return F::copy(*this, device); }
Variable Variable::sum(const ReduceAxes& axes, YesNo keepdims) const {
  return F::sum(*this, axes, keepdims);
}
Variable Variable::mean(const ReduceAxes& axes, YesNo keepdims) const {
  return F::mean(*this, axes, keepdims);
}
Variable Variable::max(const ReduceAxes& axes, YesNo keepdims) const {
  return F::max(*this, axes, keepdims);
}
Variable Variable::min(const ReduceAxes& axes, YesNo keepdims) const {
  return F::min(*this, axes, keepdims);
}
Variable Variable::clip(const Operand& low, const Operand& high) const {
  return F::clip(*this, as_operand(low), as_operand(high));
}

}  // namespace catena
