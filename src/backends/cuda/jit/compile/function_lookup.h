// Functions looked up by name at run time, in libraries that may be absent.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace catena::jit {

// Fills function pointers and remembers what was not found. The declared types are trusted.
class FunctionLookup {
 public:
  // The address of a function, or null.
  using Find = std::function<void*(const char* name)>;
  explicit FunctionLookup(Find find) : find_(std::move(find)) {}

  template <class Function>
  void get(Function& function, const char* name) {
    function = reinterpret_cast<Function>(find_(name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  // The first name that was not found; empty if all were found.
  const std::string& missing() const { return missing_; }

 private:
  Find find_;
  std::string missing_;
};

}  // namespace catena::jit
