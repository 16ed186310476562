// Writing one number into all elements, for functions that are named in errors.
#pragma once

#include "catena/array/array.h"

namespace catena {

// Array::fill in the name of `who`: ValueError for undefined and read-only arrays and for numbers
// that the dtype does not hold.
void fill_elements(const char* who, const Array& a, const Scalar& value);

}  // namespace catena
