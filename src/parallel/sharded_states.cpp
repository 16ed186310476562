#include "catena/parallel/sharded_states.h"

namespace catena::parallel {

void ShardedStates::run(optimizers::UpdateContext& update) {
  for (const optimizers::ParameterArena& arena : update.optimizer().layout().arenas()) {
    if (arena.size() > 0)
      comm_.all_gather(arena.covered().data, arena.data().part({0, arena.size()}));
  }
}

Array ShardedStates::gather_parts(const Array& part) { return comm_.all_gather(part); }

bool ShardedStates::sum_parts(const Array& sums) {
  comm_.all_reduce(sums, {}, sums);
  return true;
}

}  // namespace catena::parallel
