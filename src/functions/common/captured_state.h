// States that layers keep between calls, and graphs.
#pragma once

#include "catena/core/error.h"
#include "catena/core/graph.h"

namespace catena::functions {

// Error if a state that was made in the capture `made_in` (cuda::capture_id() then) is used in
// another one: the graph would begin every replay with it.
inline void check_captured_state(const char* layer, uint64_t made_in) {
  const uint64_t now = cuda::capture_id();
  CATENA_CHECK(Error, now == 0 || now == made_in, layer,
               ": the step that is captured begins with the state of an earlier step, as would "
               "every replay of it; call reset_state() in the step, or keep states in persistent "
               "arrays and use lstm() or NStepLSTM");
}

}  // namespace catena::functions
