// The C++ types of dtypes in kernel texts.
#pragma once

#include "catena/core/dtype.h"

namespace catena::jit {

const char* type_name(Dtype d);

}  // namespace catena::jit
