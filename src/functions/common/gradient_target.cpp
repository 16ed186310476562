#include "functions/common/gradient_target.h"

#include "catena/array/creation.h"
#include "catena/autograd/variable.h"

namespace catena::functions {

void GradientTarget::give(BackwardContext& context, int place) const {
  if (!array.defined()) return;
  if (in_place)
    context.written(place);
  else
    context.set_grad(place, Variable::constant(array));
}

GradientTarget gradient_target(BackwardContext& context, int place, const Shape& shape, Dtype dtype,
                               Device device, bool shared) {
  if (!wants(context, place)) return {};
  if (!shared) {
    const auto d = context.destination(place);
    if (d && d.array->is_contiguous() && d.array->dtype() == dtype)
      return {*d.array, d.accumulate, true};
  }
  return {Array::uninitialized(shape, dtype, device)};
}

void give_zeros(BackwardContext& context, const FunctionNode& node) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const VariableNode& input = *node.inputs()[i];
    if (context.needs(int(i)))
      context.set_grad(int(i), Variable::constant(zeros(input.shape, {input.dtype, input.device})));
  }
}

}  // namespace catena::functions
