// Groups: parameters of one optimizer that learn at another rate, decay otherwise, or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace catena::optimizers {

// What is different for the parameters of a group.
struct GroupOptions {
  double rate = 1;      // factor of the learning rate
  double decay = 1;     // factor of every decay: of hooks and of the rule; 0: none
  bool frozen = false;  // no updates; the gradients do not count in norms
  // Of a frozen group: false lets backward passes leave its gradients out.
  bool gradients = true;
};

// A group of an optimizer. Which parameters belong to it is decided by their names.
struct ParameterGroup {
  std::string name;
  std::vector<std::string> patterns;  // "*/b": '*' stands for any text
  GroupOptions options;
};

// Whether a name fits a pattern, in which '*' stands for any text, slashes included.
bool fits_pattern(std::string_view name, std::string_view pattern);

}  // namespace catena::optimizers
