// softplus with a sharpness, as a composition.
#include "catena/functions/activation/softplus.h"

namespace catena::functions {

Variable softplus(const VariableOperand& x, double beta) {
  CATENA_CHECK(ValueError, beta != 0, "softplus: expected a beta other than 0");
  return beta == 1 ? softplus(x) : softplus(x.variable("softplus") * beta) * (1 / beta);
}

}  // namespace catena::functions
