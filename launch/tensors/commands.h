// Commands of catena-tensors.
#pragma once

#include "tensors/options.h"

namespace catena::launch::tensors {

// Runs a command; 0, or 1 for files that differ. Throws catena::Error.
int run(const Options& options);

}  // namespace catena::launch::tensors
