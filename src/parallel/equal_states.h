// Comparison of what ranks hold in common: parameters, persistent arrays, optimizer states and
// hyper-parameters.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"

namespace catena::parallel {

// Collective: one exchange of a few bytes over host memory, after reading every parameter, state
// and persistent array that is declared OverRanks::kEqual once (on their device; this waits for
// it). When ranks differ, all throw ValueError with the first hyper-parameter, array or state that
// does and with the ranks; the communicator has then failed, and the job's report blames the rank
// that differs from all others, if there is one. `who` begins the text. Bits are compared: a
// parameter that is NaN on all ranks is equal. With `is_updated`, at the end of an update, what its
// hooks did to the gradients is compared too (UpdateContext::note_change).
void check_equal_states(Communicator& comm, Optimizer& optimizer, const char* who,
                        bool is_updated = false);

}  // namespace catena::parallel
