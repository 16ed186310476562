// Functions looked up by name at run time, in libraries that may be absent.
#pragma once

#include <dlfcn.h>

#include <functional>
#include <string>
#include <utility>

namespace catena::jit {

// Looks up functions and remembers what was not found:
//   FunctionLookup functions{library};
//   decltype(&cuInit) init = functions("cuInit");
class FunctionLookup {
 public:
  // The address of a function, or null.
  using Find = std::function<void*(const char* name)>;
  explicit FunctionLookup(Find find) : find_(std::move(find)) {}
  // In a library that dlopen() has opened; in none nothing is found.
  explicit FunctionLookup(void* library)
      : find_([library](const char* name) { return library ? dlsym(library, name) : nullptr; }) {}

  // Of the type of the pointer that it initializes, which is trusted.
  struct Address {
    void* value;
    template <class Function>
    operator Function() const {
      return reinterpret_cast<Function>(value);
    }
  };
  Address operator()(const char* name) {
    void* const found = find_(name);
    if (found == nullptr && missing_.empty()) missing_ = name;
    return {found};
  }
  // The first name that was not found; empty if all were found.
  const std::string& missing() const { return missing_; }

 private:
  Find find_;
  std::string missing_;
};

}  // namespace catena::jit
