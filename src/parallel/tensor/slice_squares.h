// Sums of squares of parameters of which each rank has a slice, for rules with norms.
#pragma once

#include <map>
#include <set>

#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"

namespace catena::parallel {

// Makes what UpdateStage::finish_squares gets those of the parameters that are not split: slices of
// all ranks count, and what is whole counts once.
class SliceSquares {
 public:
  SliceSquares(Communicator& tensor, const Parameters& sliced);

  // The optimizer was set up, or is about to be captured.
  void after_setup(const Optimizer& optimizer) { counts_.erase(&optimizer); }
  void prepare(const Optimizer& optimizer) { counts_for(optimizer); }
  // In place. Collective, on the current stream.
  void sum(const Optimizer& optimizer, const Arrays& squares);

 private:
  // By arena, of each slot: 1 if this rank's squares count, else 0.
  const Arrays& counts_for(const Optimizer& optimizer);

  Communicator& tensor_;
  std::set<const ParameterState*> sliced_;
  std::map<const Optimizer*, Arrays> counts_;
};

}  // namespace catena::parallel
