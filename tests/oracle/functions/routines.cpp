// The table of test_function_oracle: all functions on variables.
#include "oracle/functions/functions.h"

namespace catena::oracle {

Routines all_routines() {
  Functions functions;
  add_activation(functions);
  add_arrays(functions);
  add_attention(functions);
  add_connection(functions);
  add_evaluation(functions);
  add_loss(functions);
  add_math(functions);
  add_normalization(functions);
  add_optimizers(functions);
  add_pooling(functions);
  Routines routines;
  for (const auto& [name, function] : functions) routines[name] = routine_of(function);
  return routines;
}

}  // namespace catena::oracle
