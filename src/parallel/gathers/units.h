// Units of a model: the parts whose parameters are gathered and freed together
// (Sharding::kParameters, BucketOptions::units).
#pragma once

#include <string>
#include <vector>

#include "catena/optimizers/optimizer.h"

namespace catena::parallel {

// The unit of a parameter, by its name ("/l1/W"): the longest of `units` that it is in, else the
// direct child of the model.
std::string unit_of(const std::string& name, const std::vector<std::string>& units);

// ValueError unless each of `units` has a parameter of the optimizer.
void check_units(const Optimizer& optimizer, const std::vector<std::string>& units);

}  // namespace catena::parallel
