// The name of a caller in errors, for checks that are called with one.
#pragma once

#include "catena/core/entry_scope.h"

namespace catena {

// Errors about arguments name `who` while this lives, unless an EntryScope names a function
// already. Null leaves them without a name. Unlike an EntryScope it is not seen by memory profiles.
class ErrorName {
 public:
  explicit ErrorName(const char* who) : outermost_(detail::entry == nullptr) {
    if (outermost_) detail::entry = who;
  }
  ~ErrorName() {
    if (outermost_) detail::entry = nullptr;
  }
  ErrorName(const ErrorName&) = delete;
  ErrorName& operator=(const ErrorName&) = delete;

 private:
  const bool outermost_;
};

}  // namespace catena
