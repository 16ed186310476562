// Checks of arguments shared by functions on arrays.
#pragma once

#include "catena/array/array_class.h"

namespace catena {

// Checks of arguments. Their errors name the current EntryScope, or `who` if there is none.
// Throws ValueError for a default-constructed array.
[[noreturn, gnu::cold]] void fail_undefined(const char* who = nullptr);
inline void check_defined(const char* who, const Array& a) {
  if (!a.defined()) [[unlikely]]
    fail_undefined(who);
}
inline void check_defined(const Array& a) { check_defined(nullptr, a); }
// Called by every operation that writes into an array it did not make. Throws ValueError with the
// reason unless the array may be written.
[[noreturn, gnu::cold]] void fail_not_writable(const char* who, const Array& a);
inline void check_writable(const char* who, const Array& a) {
  if (!a.is_writable()) [[unlikely]]
    fail_not_writable(who, a);
}
inline void check_writable(const Array& a) { check_writable(nullptr, a); }
// Throws DeviceError with both devices unless both arrays are on one device.
void check_same_device(const char* who, const Array& a, const Array& b);
inline void check_same_device(const Array& a, const Array& b) { check_same_device(nullptr, a, b); }

}  // namespace catena
