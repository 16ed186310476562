// Differentiable rearranging of arrays: views, joins, reductions, casts and copies between devices.
//
// Results share memory with their inputs where the array function of the same name gives a view;
// the gradients of views are views and cost no kernel.
#pragma once

#include <initializer_list>
#include <vector>

#include "catena/array/manipulation.h"
#include "catena/functions/math.h"

namespace catena::functions {

// Axes of a reduction: nothing or {} for all, one number, or a list.
struct AxisList {
  Axes axes;
  AxisList() = default;
  template <std::integral T>
  AxisList(T axis) : axes{static_cast<int64_t>(axis)} {}
  AxisList(std::initializer_list<int64_t> list) : axes(list) {}
  AxisList(const Axes& list) : axes(list) {}
};

// Reductions of floats. IndexError for an axis out of range.
Variable sum(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);
Variable mean(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);
inline Variable average(const VariableOperand& x, const AxisList& axes = {},
                        bool keepdims = false) {
  return mean(x, axes, keepdims);
}
// The gradient goes to every element that equals the extreme.
Variable max(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);
Variable min(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);
// Sums down to a shape that broadcasts to x's; x itself when the shapes agree.
Variable sum_to(const VariableOperand& x, const Shape& shape);

// One -1 is inferred. InvalidType when the sizes differ.
Variable reshape(const VariableOperand& x, const Shape& shape);
Variable expand_dims(const VariableOperand& x, int64_t axis);
Variable squeeze(const VariableOperand& x, const AxisList& axes = {});
// Without axes: reversed.
Variable transpose(const VariableOperand& x, const Axes& axes = {});
Variable swapaxes(const VariableOperand& x, int64_t axis1, int64_t axis2);
Variable broadcast_to(const VariableOperand& x, const Shape& shape);
// All inputs as views of their common shape.
Variables broadcast(const Variables& xs);

// Inputs that agree in all but one axis, one after the other.
Variable concat(const Variables& xs, int64_t axis = 1);
// Equal parts (the extent must divide), or cuts at ascending positions, {4} at one. Views.
Variables split_axis(const VariableOperand& x, int64_t sections, int64_t axis);
Variables split_axis(const VariableOperand& x, const Axes& positions, int64_t axis);
inline Variables split_axis(const VariableOperand& x, std::initializer_list<int64_t> positions,
                            int64_t axis) {
  return split_axis(x, Axes(positions), axis);
}
// Basic index, as Array::at. A view; the gradient is zero outside it.
Variable get_item(const VariableOperand& x, const std::vector<Index>& indices);

// Another floating dtype; x itself when it has it already.
Variable cast(const VariableOperand& x, Dtype dtype);
// On another device, for model-parallel networks: both directions are asynchronous copies ordered
// as Array::to; the gradient comes back to where x lives. Across CPUs, GPUs, and between them.
Variable copy(const VariableOperand& x, Device device);
// Passes values and gradients unchanged.
Variable identity(const VariableOperand& x);
Variables identity(const Variables& xs);

}  // namespace catena::functions
