// Groups and freezing as users of an optimizer call them.
#include <algorithm>

#include "catena/array/creation.h"
#include "catena/optimizers/optimizer.h"
#include "core/first_names.h"

namespace catena::optimizers {
namespace {

bool holds(const Parameters& list, const Parameter& p) {
  return std::find(list.begin(), list.end(), p) != list.end();
}

}  // namespace

void Optimizer::add_group(const std::string& name, const std::vector<std::string>& patterns,
                          const GroupOptions& options) {
  require_differences("add_group");
  groups_.add({name, patterns, options}, is_set_up() ? &layout_ : nullptr);
  if (is_set_up()) use_groups();
}

void Optimizer::set_group(const std::string& name, const GroupOptions& options) {
  CATENA_CHECK(ValueError, !is_capturing(),
               "set_group: called while a graph is captured, so that every replay would set the "
               "numbers; set them before the capture or between replays");
  groups_.set(name, options);
  if (is_set_up()) use_groups();
}

// Whether the rule and the moment allow that parameters are updated differently.
void Optimizer::require_differences(const char* who) const {
  CATENA_CHECK(ValueError, !updates_arenas() || reads_segments(), who,
               ": this rule updates arenas and does not read groups; override reads_segments and "
               "follow OptimizerCall::segments");
  CATENA_CHECK(ValueError, !is_capturing(), who,
               ": called while a graph is captured, so that every replay would repeat it; call it "
               "before");
}

// Brings the devices' numbers and the parameters' wish for gradients up to date.
void Optimizer::use_groups() {
  ++*changes_of_numbers_;
  if (!uses_segments()) return;
  for (size_t i = 0; i < layout_.arenas().size(); ++i) {
    const ParameterArena& arena = layout_.arenas()[i];
    const DeviceScope scope(arena.device());
    if (!segments_[i].defined())
      segments_[i] = make_segments(layout_, arena);
    else
      segments_[i].factors.assign(
          array(groups_.factors(layout_, arena), segments_[i].factors.shape(), cpu(0)));
  }
  groups_.tell_parameters(layout_);
}

ArenaSegments Optimizer::make_segments(const ArenaSet& layout, const ParameterArena& arena) const {
  return segments_of(arena, groups_.factors(layout, arena));
}

bool Optimizer::is_frozen_alone(const Parameter& parameter) const {
  return groups_.is_frozen_alone(parameter);
}

bool Optimizer::is_frozen(const Parameter& parameter) const {
  for (size_t i = 0; i < layout_.parameters().size(); ++i)
    if (layout_.parameters()[i] == parameter)
      return groups_.options_of(layout_.name(i), parameter).frozen;
  return is_frozen_alone(parameter);
}

// Parameters whose path fits the pattern, or is below it.
Parameters Optimizer::parameters_at(const char* who, const std::string& path) const {
  require_setup(who);
  Parameters result;
  const size_t count = layout_.parameters().size();
  const auto name_of = [&](size_t i) -> const std::string& { return layout_.name(i); };
  for (size_t i = 0; i < count; ++i)
    if (fits_pattern(name_of(i), path) || fits_pattern(name_of(i), path + "/*"))
      result.push_back(layout_.parameters()[i]);
  CATENA_CHECK(ValueError, !result.empty(), who, ": no parameter is at '", path,
               "'; there are: ", first_names(count, name_of));
  return result;
}

Parameters Optimizer::parameters_in(const char* who, const Parameters& given) const {
  require_setup(who);
  CATENA_CHECK(ValueError, !given.empty(), who, ": the part of the model has no parameters");
  for (const Parameter& p : given)
    CATENA_CHECK(ValueError, holds(layout_.parameters(), p), who, ": the optimizer does not hold '",
                 p.defined() ? p.name() : std::string("(undefined)"),
                 "'; give a part of the model that it was set up with, not of a copy");
  return given;
}

void Optimizer::set_frozen(const char* who, const Parameters& parameters, bool frozen) {
  require_differences(who);
  groups_.freeze(parameters, frozen);
  use_groups();
}

void Optimizer::freeze(const std::string& path) {
  set_frozen("freeze", parameters_at("freeze", path), true);
}
void Optimizer::freeze(const Parameterized& part) {
  set_frozen("freeze", parameters_in("freeze", part.parameters()), true);
}
void Optimizer::freeze(const Parameter& parameter) {
  set_frozen("freeze", parameters_in("freeze", {parameter}), true);
}
void Optimizer::unfreeze(const std::string& path) {
  set_frozen("unfreeze", parameters_at("unfreeze", path), false);
}
void Optimizer::unfreeze(const Parameterized& part) {
  set_frozen("unfreeze", parameters_in("unfreeze", part.parameters()), false);
}
void Optimizer::unfreeze(const Parameter& parameter) {
  set_frozen("unfreeze", parameters_in("unfreeze", {parameter}), false);
}

}  // namespace catena::optimizers
