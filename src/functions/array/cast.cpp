// cast
#include "catena/functions/array/cast.h"

#include "catena/autograd/linear_map.h"

namespace catena::functions {

Variable cast(const VariableOperand& operand, Dtype dtype) {
  const Variable& x = operand.variable("Cast");
  if (x.dtype() == dtype) return x;
  if (is_float(dtype) && is_float(x.dtype())) return detail::cast(x, dtype);
  return Variable::constant(x.data().astype(dtype));
}

}  // namespace catena::functions
