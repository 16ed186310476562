// hard_shrink with a number as its bound, checked; the kernels are a row of the table.
#include "catena/functions/activation/hard_shrink.h"

#include "catena/core/error.h"

namespace catena::functions {

// The row.
Variable hard_shrink(const VariableOperand& x, const VariableOperand& bound);

Variable hard_shrink(const VariableOperand& x, double bound) {
  CATENA_CHECK(ValueError, bound >= 0, "HardShrink: expected a bound of at least 0, got ", bound);
  return hard_shrink(x, VariableOperand(bound));
}

}  // namespace catena::functions
