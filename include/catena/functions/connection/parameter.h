// A parameter as a function without inputs.
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// A function without inputs whose value is its parameter: p() * x.
class Parameter : public Parameterized {
 public:
  // Takes the array without a copy. ValueError for an undefined one, DtypeError unless it is of a
  // floating dtype.
  explicit Parameter(const Array& data);

  // W itself; switched on, a volatile variable over the same memory, with no history.
  Variable operator()(Volatile is_volatile = Volatile::off) const;
  CATENA_PARAMETERS(W)

  OwnedParameter W;  // the value
};

}  // namespace catena::functions
