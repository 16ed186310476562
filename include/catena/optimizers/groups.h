// Groups: parameters of one optimizer that learn at another rate, decay otherwise, or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/autograd/parameter.h"

namespace catena::optimizers {

class ArenaSet;
class ParameterArena;

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

// The groups of an optimizer, and the parameters that are frozen one by one. Errors are those of
// the calls of Optimizer.
class ParameterGroups {
 public:
  const std::vector<ParameterGroup>& all() const { return groups_; }
  // Whether parameters may differ: there is a group, or one was frozen or unfrozen.
  bool any() const { return !groups_.empty() || freezes_; }

  // With a layout, what nothing in it fits is refused.
  void add(ParameterGroup group, const ArenaSet* layout);
  void set(const std::string& name, const GroupOptions& options);
  // Numbers by name, "no decay/rate", for checkpoints; the group and its options with another
  // number, nothing for other names.
  std::vector<std::pair<std::string, double>> numbers() const;
  std::optional<std::pair<std::string, GroupOptions>> with_number(const std::string& name,
                                                                  double value) const;
  // ValueError unless every group has parameters in the layout.
  void check(const ArenaSet& layout) const;

  // The last one that the name fits; null: none.
  const ParameterGroup* of(const std::string& name) const;
  // What holds for a parameter of this name: the options of its group, frozen too if it is alone.
  GroupOptions options_of(const std::string& name, const Parameter& parameter) const;
  bool is_frozen_alone(const Parameter& parameter) const;
  void freeze(const std::vector<Parameter>& parameters, bool frozen);
  // Parameters that the layout does not have are forgotten, and get gradients again.
  void keep(const ArenaSet& layout);

  // Rate, decay and whether it is frozen, of each slot of an arena: what kernels read.
  std::vector<double> factors(const ArenaSet& layout, const ParameterArena& arena) const;
  // Brings the parameters' wish for gradients up to date.
  void tell_parameters(const ArenaSet& layout) const;

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<Parameter> frozen_;
  bool freezes_ = false;  // freeze was called
};

}  // namespace catena::optimizers
