#include "catena/optimizers/groups.h"

#include <algorithm>
#include <cmath>

#include "catena/core/error.h"
#include "catena/optimizers/arena.h"
#include "core/first_names.h"

namespace catena::optimizers {

bool fits_pattern(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t skipped = star; skipped <= name.size(); ++skipped)
    if (fits_pattern(name.substr(skipped), rest)) return true;
  return false;
}

namespace {

bool contains(const ParameterGroup& group, const std::string& name) {
  return std::any_of(group.patterns.begin(), group.patterns.end(),
                     [&](const std::string& pattern) { return fits_pattern(name, pattern); });
}

void check_group(const std::string& name, const GroupOptions& options) {
  CATENA_CHECK(ValueError,
               options.rate >= 0 && std::isfinite(options.rate) && options.decay >= 0 &&
                   std::isfinite(options.decay),
               "group '", name, "': expected factors that are finite and at least 0, got rate ",
               options.rate, " and decay ", options.decay);
}

}  // namespace

// Groups ------------------------------------------------------------------------------------------

const ParameterGroup* ParameterGroups::of(const std::string& name) const {
  const auto found = std::find_if(groups_.rbegin(), groups_.rend(),
                                  [&](const ParameterGroup& g) { return contains(g, name); });
  return found == groups_.rend() ? nullptr : &*found;
}

GroupOptions ParameterGroups::options_of(const std::string& name,
                                         const Parameter& parameter) const {
  const ParameterGroup* group = of(name);
  GroupOptions options = group == nullptr ? GroupOptions() : group->options;
  options.frozen = options.frozen || is_frozen_alone(parameter);
  return options;
}

void ParameterGroups::check(const ArenaSet& layout) const {
  for (const ParameterGroup& group : groups_) {
    const size_t count = layout.parameters().size();
    const auto name_of = [&](size_t i) -> const std::string& { return layout.name(i); };
    bool any = false;
    for (size_t i = 0; i < count && !any; ++i) any = contains(group, name_of(i));
    std::string patterns;
    for (const std::string& p : group.patterns) patterns += (patterns.empty() ? "" : ", ") + p;
    CATENA_CHECK(ValueError, any, "group '", group.name, "': no parameter has a name that fits ",
                 patterns, "; there are: ", first_names(count, name_of));
  }
}

void ParameterGroups::add(ParameterGroup group, const ArenaSet* layout) {
  check_group(group.name, group.options);
  CATENA_CHECK(ValueError, !group.name.empty() && group.name.find('/') == group.name.npos,
               "add_group: expected a name without '/', got '", group.name, "'");
  for (const ParameterGroup& other : groups_)
    CATENA_CHECK(ValueError, other.name != group.name, "add_group: there is a group '", group.name,
                 "' already; set_group changes its numbers");
  groups_.push_back(std::move(group));
  try {
    if (layout != nullptr) check(*layout);
  } catch (...) {
    groups_.pop_back();
    throw;
  }
}

void ParameterGroups::set(const std::string& name, const GroupOptions& options) {
  std::string known;
  for (ParameterGroup& group : groups_) {
    known += (known.empty() ? "" : ", ") + group.name;
    if (group.name != name) continue;
    check_group(name, options);
    group.options = options;
    return;
  }
  fail<ValueError>("set_group: there is no group '", name,
                   "'; there are: ", known.empty() ? "none" : known);
}

std::vector<std::pair<std::string, double>> ParameterGroups::numbers() const {
  std::vector<std::pair<std::string, double>> result;
  for (const ParameterGroup& group : groups_) {
    result.emplace_back(group.name + "/rate", group.options.rate);
    result.emplace_back(group.name + "/decay", group.options.decay);
    result.emplace_back(group.name + "/frozen", group.options.frozen ? 1 : 0);
  }
  return result;
}

std::optional<std::pair<std::string, GroupOptions>> ParameterGroups::with_number(
    const std::string& name, double value) const {
  const size_t slash = name.rfind('/');
  for (const ParameterGroup& group : groups_) {
    if (slash == name.npos || group.name != name.substr(0, slash)) continue;
    const std::string number = name.substr(slash + 1);
    GroupOptions options = group.options;
    if (number == "rate")
      options.rate = value;
    else if (number == "decay")
      options.decay = value;
    else if (number == "frozen")
      options.frozen = value != 0;
    else
      return std::nullopt;
    return std::pair(group.name, options);
  }
  return std::nullopt;
}

// Freezing ----------------------------------------------------------------------------------------

bool ParameterGroups::is_frozen_alone(const Parameter& parameter) const {
  return std::find(frozen_.begin(), frozen_.end(), parameter) != frozen_.end();
}

void ParameterGroups::freeze(const std::vector<Parameter>& parameters, bool frozen) {
  for (const Parameter& p : parameters) {
    std::erase(frozen_, p);
    if (frozen) frozen_.push_back(p);
    p.variable().node()->requires_grad = !frozen;
  }
  freezes_ = true;
}

void ParameterGroups::keep(const ArenaSet& layout) {
  const Parameters& held = layout.parameters();
  std::erase_if(frozen_, [&](const Parameter& p) {
    const bool gone = std::find(held.begin(), held.end(), p) == held.end();
    if (gone) p.variable().node()->requires_grad = true;
    return gone;
  });
}

// What follows ------------------------------------------------------------------------------------

std::vector<double> ParameterGroups::factors(const ArenaSet& layout,
                                             const ParameterArena& arena) const {
  std::vector<double> factors;
  for (const ParameterArena::Slot& slot : arena.slots()) {
    const GroupOptions options = options_of(layout.name(size_t(slot.index)), slot.parameter);
    factors.insert(factors.end(), {options.rate, options.decay, options.frozen ? 1.0 : 0.0});
  }
  return factors;
}

void ParameterGroups::tell_parameters(const ArenaSet& layout) const {
  for (size_t i = 0; i < layout.parameters().size(); ++i) {
    const ParameterGroup* group = of(layout.name(i));
    const Parameter& p = layout.parameters()[i];
    const bool frozen = is_frozen_alone(p);
    if (group == nullptr && !frozen) continue;
    const bool wants = !frozen && (!group->options.frozen || group->options.gradients);
    p.variable().node()->requires_grad = wants;
  }
}

}  // namespace catena::optimizers
