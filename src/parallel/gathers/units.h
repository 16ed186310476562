// Units of a model: the parts whose parameters are gathered and freed together
// (Sharding::kParameters, BucketOptions::units).
#pragma once

#include <cstdint>
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
// direct child of the model, or of a child with numbered parts, such as a vector of layers or a
// Sequence ("/body/3/l1/W"), the part ("/body/3").
std::string unit_of(const std::string& name, const std::vector<std::string>& units);

// ValueError unless each of `units` has a parameter of the optimizer.
void check_units(const Optimizer& optimizer, const std::vector<std::string>& units);

// Bytes of units that may be here at once before one that is not in use is freed. Less time is lost
// to the other ranks where more than one is here, which is worth more memory on a GPU.
inline int64_t bytes_of_small_units(Device device) {
  return int64_t(device.is_cuda() ? 128 : 16) << 20;
}

// A line of the log for each unit of several layers that is not small and has more than an eighth
// of the model.
void warn_of_large_units(const Optimizer& optimizer, const std::vector<std::string>& units);

}  // namespace catena::parallel
