// Variables of the environment that have other values, or none, for a while.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

class EnvironmentScope {
 public:
  using Value = std::optional<std::string>;  // without one, the variable is not set

  EnvironmentScope() = default;
  EnvironmentScope(const std::string& name, const Value& value) { set(name, value); }
  ~EnvironmentScope() {
    for (auto one = before_.rbegin(); one != before_.rend(); ++one) put(one->first, one->second);
  }
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

  // Until the end of the scope, too.
  void set(const std::string& name, const Value& value) {
    const char* now = std::getenv(name.c_str());
    before_.emplace_back(name, now ? Value(now) : std::nullopt);
    put(name, value);
  }

 private:
  static void put(const std::string& name, const Value& value) {
    if (value)
      ::setenv(name.c_str(), value->c_str(), 1);
    else
      ::unsetenv(name.c_str());
  }
  std::vector<std::pair<std::string, Value>> before_;
};
