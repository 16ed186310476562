// Units of a model: the parts whose parameters are gathered and freed together
// (Sharding::kParameters, BucketOptions::units).
#pragma once

#include <string>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/bucket_options.h"

namespace catena::parallel {

// Whether units are gathered as they are used: one rank has all of them.
inline bool gathers_units(const Communicator& comm, const BucketOptions& options) {
  return options.sharding == Sharding::kParameters && comm.size() > 1;
}

// The unit of a parameter, by its name ("/l1/W"): the longest of `units` that it is in, else the
// direct child of the model.
std::string unit_of(const std::string& name, const std::vector<std::string>& units);

// ValueError unless each of `units` has a parameter of the optimizer.
void check_units(const Optimizer& optimizer, const std::vector<std::string>& units);

}  // namespace catena::parallel
