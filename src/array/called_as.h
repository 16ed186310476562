// Errors of functions that are made of other ones name the function that was called:
//
//   Array cross(const Array& a, const Array& b, int64_t axis) try {
//     ...
//   } catch (const Error&) {
//     rethrow_as("cross");
//   }
#pragma once

#include "catena/core/error.h"

namespace catena {

// Throws the current exception again with `who` in place of the name that its message begins with.
// Leaves errors alone that are not about arguments (memory, files, ...). Not for functions that
// call the user's.
[[noreturn, gnu::cold]] void rethrow_as(const char* who);

}  // namespace catena
