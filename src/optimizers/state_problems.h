// Reasons for which a saved state does not fit an optimizer, for those that have its arrays and for
// those that know their forms only.
#pragma once

#include <map>
#include <string>

#include "catena/array/array.h"

namespace catena::optimizers {

struct StateForm {
  Dtype dtype;
  Shape shape;
};
using StateForms = std::map<std::string, StateForm>;

// A line for each array that is missing, unknown, or of another shape or dtype, in the order of the
// names, and what to do about loss scales and master copies. "" if the states fit.
std::string state_problems(const StateForms& expected, const StateForms& given);

}  // namespace catena::optimizers
