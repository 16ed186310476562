#include "job/rank_state.h"

#include "base/process.h"

namespace catena::launch {

char state_of(const StartReport& rank) {
  const comm::ProcessLife life = comm::process_life(rank.pid);
  return life.start == rank.started ? life.state : '\0';
}

void signal_rank(const StartReport& rank, int signal) {
  const bool unknown = rank.started == 0;  // a host without /proc
  if (rank.pid > 0 && (unknown || !has_ended(state_of(rank)))) send_marked_signal(rank.pid, signal);
}

}  // namespace catena::launch
