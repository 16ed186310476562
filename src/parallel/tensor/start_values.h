// Start values of the layers of a tensor-parallel model: those of the layer that is not split.
#pragma once

#include "catena/comm/communicator.h"

namespace catena::parallel {

// The communicator as layers keep it. ValueError for one that is not shared.
CommunicatorPtr kept_communicator(const char* who, Communicator& comm);

// ValueError unless the ranks can have equal pieces of `extent`, which is named "out_size".
void check_pieces(const char* who, const char* extent_name, int64_t extent,
                  const Communicator& comm);

// Collective: ValueError on all ranks unless they give arrays of one shape and dtype with the same
// numbers, of which a few are compared.
void check_equal_start(const char* who, const Array& whole, Communicator& comm);

}  // namespace catena::parallel
