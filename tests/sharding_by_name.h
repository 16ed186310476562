// Kinds of sharding as arguments of programs.
#pragma once

#include <string>

#include "catena/core/error.h"
#include "catena/parallel/bucket_options.h"

namespace catena::testing {

// "none", "states", "gradients" or "parameters".
inline parallel::Sharding sharding_by_name(const std::string& asked) {
  using parallel::Sharding;
  for (const Sharding sharding :
       {Sharding::kNone, Sharding::kStates, Sharding::kGradients, Sharding::kParameters})
    if (parallel::name(sharding) == asked) return sharding;
  fail<ValueError>("expected none, states, gradients or parameters, got '", asked, "'");
}

}  // namespace catena::testing
