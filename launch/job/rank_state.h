// Rank processes of this host, which are not children of the launcher: when they have ended, their
// numbers may be those of other processes.
#pragma once

#include "wire/rank_report.h"

namespace catena::launch {

// As comm::process_state; '\0' when the rank process has ended.
char state_of(const StartReport& rank);
inline bool has_ended(char state) { return state == '\0' || state == 'Z'; }

// Does nothing when the rank process has ended, also when its number is another process's by now.
void signal_rank(const StartReport& rank, int signal);

}  // namespace catena::launch
