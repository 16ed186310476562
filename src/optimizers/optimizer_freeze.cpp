// Freezing of single parameters, beside the groups.
#include <algorithm>

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {
namespace {

bool holds(const Parameters& list, const Parameter& p) {
  return std::find(list.begin(), list.end(), p) != list.end();
}

}  // namespace

bool Optimizer::is_frozen_alone(const Parameter& parameter) const {
  return holds(frozen_, parameter);
}

bool Optimizer::is_frozen(const Parameter& parameter) const {
  if (is_frozen_alone(parameter)) return true;
  for (size_t i = 0; i < layout_.parameters().size(); ++i) {
    if (layout_.parameters()[i] != parameter) continue;
    const ParameterGroup* group = group_of(layout_.name(i));
    return group != nullptr && group->options.frozen;
  }
  return false;
}

// Parameters whose path fits the pattern, or is below it.
Parameters Optimizer::parameters_at(const char* who, const std::string& path) const {
  require_setup(who);
  Parameters result;
  std::string names;
  for (size_t i = 0; i < layout_.parameters().size(); ++i) {
    const std::string& name = layout_.name(i);
    if (fits_pattern(name, path) || fits_pattern(name, path + "/*"))
      result.push_back(layout_.parameters()[i]);
    if (i < 8) names += (i == 0 ? "" : ", ") + name;
  }
  CATENA_CHECK(ValueError, !result.empty(), who, ": no parameter is at '", path,
               "'; there are: ", names, layout_.parameters().size() > 8 ? ", ..." : "");
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
  CATENA_CHECK(ValueError, !updates_arenas() || reads_segments(), who,
               ": this rule updates arenas and does not read groups; override reads_segments and "
               "follow OptimizerCall::segments");
  CATENA_CHECK(ValueError, !is_capturing(), who,
               ": called while a graph is captured, so that every replay would repeat it");
  for (const Parameter& p : parameters) {
    std::erase(frozen_, p);
    if (frozen) frozen_.push_back(p);
    p.variable().node()->requires_grad = !frozen;
  }
  freezes_ = true;
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

// Of a new layout: those that it does not have are forgotten, and get gradients again.
void Optimizer::keep_frozen(const ArenaSet& layout) {
  std::erase_if(frozen_, [&](const Parameter& p) {
    const bool gone = !holds(layout.parameters(), p);
    if (gone) p.variable().node()->requires_grad = true;
    return gone;
  });
}

}  // namespace catena::optimizers
