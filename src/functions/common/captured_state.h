// Checks of the states that layers keep between calls.
#pragma once

#include "catena/autograd/variable.h"
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

// GradientError if a state, or an undefined one, was recorded and the gates of this step are
// volatile, or the other way round.
inline void check_recorded_alike(const char* layer, const Variable& state, const Variable& gates) {
  if (!state.defined() || state.is_volatile() == gates.is_volatile()) return;
  const bool was_volatile = state.is_volatile();
  CATENA_CHECK(GradientError, !(was_volatile ? gates : state).requires_grad(), layer,
               ": the step before was ",
               was_volatile ? "volatile, this one is recorded" : "recorded, this one is volatile",
               "; call reset_state() between them");
}

// ShapeError unless a state is that of n samples. `states` names all that set_state takes.
inline void check_samples(const char* layer, const char* states, const Variable& h, int64_t n) {
  const int64_t kept = h.shape()[0];
  CATENA_CHECK(ShapeError, kept == n, layer, ": the state is that of ", kept, " samples, x has ", n,
               "; call reset_state() where other sequences begin",
               n > kept ? ""
                        : message(". Where some of the sequences have ended, order them from the "
                                  "longest to the shortest and call set_state() with the first ",
                                  n, " rows of ", states, ", as in h(Slice(0, ", n, "))"));
}

}  // namespace catena::functions
