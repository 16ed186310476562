// Groups of parameters: who belongs to which, and their numbers on the devices.
#include <algorithm>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/optimizers/optimizer.h"

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

const ParameterGroup* Optimizer::group_of(const std::string& name) const {
  const auto found = std::find_if(groups_.rbegin(), groups_.rend(),
                                  [&](const ParameterGroup& g) { return contains(g, name); });
  return found == groups_.rend() ? nullptr : &*found;
}

// ValueError unless every group has parameters in the layout.
void Optimizer::check_groups(const ArenaSet& layout) const {
  for (const ParameterGroup& group : groups_) {
    std::string names;
    bool any = false;
    for (size_t i = 0; i < layout.parameters().size() && !any; ++i) {
      any = contains(group, layout.name(i));
      if (i < 8) names += (i == 0 ? "" : ", ") + layout.name(i);
    }
    std::string patterns;
    for (const std::string& p : group.patterns) patterns += (patterns.empty() ? "" : ", ") + p;
    CATENA_CHECK(ValueError, any, "group '", group.name, "': no parameter has a name that fits ",
                 patterns, "; there are: ", names, layout.parameters().size() > 8 ? ", ..." : "");
  }
}

void Optimizer::add_group(const std::string& name, const std::vector<std::string>& patterns,
                          const GroupOptions& options) {
  check_group(name, options);
  CATENA_CHECK(ValueError, !name.empty() && name.find('/') == name.npos,
               "add_group: expected a name without '/', got '", name, "'");
  CATENA_CHECK(ValueError, !updates_arenas() || reads_segments(),
               "add_group: this rule updates arenas and does not read groups; override "
               "reads_segments and follow OptimizerCall::segments");
  CATENA_CHECK(ValueError, !is_capturing(),
               "add_group: called while a graph is captured; add groups before");
  for (const ParameterGroup& group : groups_)
    CATENA_CHECK(ValueError, group.name != name, "add_group: there is a group '", name,
                 "' already; set_group changes its numbers");
  groups_.push_back({name, patterns, options});
  try {
    if (is_set_up()) check_groups(layout_);
  } catch (...) {
    groups_.pop_back();
    throw;
  }
  if (is_set_up()) use_groups();
}

ParameterGroup& Optimizer::known_group(const std::string& name) {
  std::string known;
  for (ParameterGroup& group : groups_) {
    if (group.name == name) return group;
    known += (known.empty() ? "" : ", ") + group.name;
  }
  fail<ValueError>("set_group: there is no group '", name,
                   "'; there are: ", known.empty() ? "none" : known);
}

void Optimizer::set_group(const std::string& name, const GroupOptions& options) {
  ParameterGroup& group = known_group(name);
  check_group(name, options);
  CATENA_CHECK(ValueError, !is_capturing(),
               "set_group: called while a graph is captured, so that every replay would set the "
               "numbers; set them before the capture or between replays");
  group.options = options;
  if (is_set_up()) use_groups();
}

// "no decay/rate" and so on; false for other names.
bool Optimizer::set_group_number(const std::string& name, double value) {
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
      return false;
    set_group(std::string(group.name), options);
    return true;
  }
  return false;
}

std::vector<double> Optimizer::factors_of(const ArenaSet& layout,
                                          const ParameterArena& arena) const {
  std::vector<double> factors;
  for (const ParameterArena::Slot& slot : arena.slots()) {
    const ParameterGroup* group = group_of(layout.name(size_t(slot.index)));
    const GroupOptions options = group == nullptr ? GroupOptions() : group->options;
    const bool frozen = options.frozen || is_frozen_alone(slot.parameter);
    factors.insert(factors.end(), {options.rate, options.decay, frozen ? 1.0 : 0.0});
  }
  return factors;
}

ArenaSegments Optimizer::make_segments(const ArenaSet& layout, const ParameterArena& arena) const {
  return segments_of(arena, factors_of(layout, arena));
}

// Brings the devices' numbers and the parameters' wish for gradients up to date.
void Optimizer::use_groups() {
  if (!uses_segments()) return;
  for (size_t i = 0; i < layout_.arenas().size(); ++i) {
    const ParameterArena& arena = layout_.arenas()[i];
    const DeviceScope scope(arena.device());
    if (!segments_[i].defined()) {
      segments_[i] = make_segments(layout_, arena);
      continue;
    }
    const std::vector<double> factors = factors_of(layout_, arena);
    segments_[i].factors.assign(array(factors, segments_[i].factors.shape(), cpu(0)));
  }
  for (size_t i = 0; i < layout_.parameters().size(); ++i) {
    const ParameterGroup* group = group_of(layout_.name(i));
    const Parameter& p = layout_.parameters()[i];
    const bool frozen = is_frozen_alone(p);
    if (group == nullptr && !frozen) continue;
    const bool wants = !frozen && (!group->options.frozen || group->options.gradients);
    p.variable().node()->requires_grad = wants;
  }
}

}  // namespace catena::optimizers
