// Copies of models keep their ties: handles that share a parameter share its copy.
#pragma once

#include "catena/autograd/function_set.h"

namespace catena::detail {

// `copy` is being made of `model`: its base is there, its members come next. Copies of tied
// parameters are shared until all of them are made.
void begin_copy(const Parameterized& copy, const Parameterized& model);
// `copy` is destroyed: its members were not all copied if one has thrown.
void end_copy(const Parameterized& copy) noexcept;
// The parameter that a copy of this handle has.
Parameter copy_of(const OwnedParameter& handle);

}  // namespace catena::detail
