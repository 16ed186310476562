// Raises a diagnostic of the compiler to an error, for whoever includes array.h.
//
// Before C++23 x[0, 1] is x[1]: the comma drops the 0. Made an error, as it never is what was
// meant: x(0, 1) takes several indices, from C++23 on x[0, 1] as well.
#pragma once

#if defined(__clang__)
#if __clang_major__ >= 10
#pragma clang diagnostic error "-Wdeprecated-comma-subscript"
#endif
#elif defined(__GNUC__) && __cplusplus <= 202002L
#pragma GCC diagnostic error "-Wcomma-subscript"
#endif
