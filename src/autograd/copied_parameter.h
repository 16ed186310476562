// 16-bit copies of parameters, as autocast makes them: whose gradient may go to the parameter
// itself.
#pragma once

#include "catena/autograd/variable.h"

namespace catena::detail {

// The vertex of the float32 parameter that a cast has made this 16-bit vertex of; else null.
VariableNode* copied_parameter(const VariableNode& v);

}  // namespace catena::detail
