// Comparison of what ranks hold, bit for bit, where a checkpoint takes it for one shared tensor.
#pragma once

#include <string>
#include <vector>

#include "serializers/slice_plan.h"

namespace catena::training {

// What several ranks have, of which each would write some elements (TensorSlice::is_equal).
std::vector<serializers::SharedSlice> held_in_common(
    const std::vector<std::vector<serializers::TensorSlice>>& slices);

// What this rank's parts are among those, as a text to exchange. Reads each of them once, on its
// device, and waits for that.
std::string digests_of(const serializers::TensorParts& parts,
                       const std::vector<serializers::SharedSlice>& common, int rank);

// ValueError, given the texts of all ranks, that names the first tensor that differs and the ranks.
void require_equal(const char* who, const std::vector<serializers::SharedSlice>& common,
                   const std::vector<std::string>& digests);

}  // namespace catena::training
