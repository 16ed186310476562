// ShardedStates: the states of an optimizer spread over the ranks of a communicator (S. Rajbhandari
// et al., ZeRO: memory optimizations toward training trillion parameter models, 2020, stage 1).
#pragma once

#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"

namespace catena::parallel {

// A stage of an optimizer whose gradients are equal on all ranks when the rule runs. Rank r keeps
// the r-th part of every arena's states and master copies and updates that part of the parameters;
// after the rule, all ranks gather the parameters. Element by element this is what one rank would
// do, so the results have the same bits; norms of steps (LAMB) are summed over the ranks. Rules
// that update parameter by parameter cannot (ValueError in setup). Add it before setup.
//
// Optimizer::state() gathers the states: all ranks must call it, and a save that calls it,
// together. load_state() keeps this rank's part of what it is given, so a state may come from
// another number of ranks.
class ShardedStates : public optimizers::UpdateStage {
 public:
  // The communicator must outlive the stage, which holds it when it is shared.
  explicit ShardedStates(Communicator& comm) : comm_(comm), keep_(comm.weak_from_this().lock()) {}

  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kGather; }
  const char* name() const override { return "sharded states"; }
  Share share() const override { return {comm_.rank(), comm_.size()}; }
  void run(optimizers::UpdateContext& update) override;
  Array gather_parts(const Array& part) override;
  bool sum_parts(const Array& sums) override;

 private:
  Communicator& comm_;
  CommunicatorPtr keep_;
};

}  // namespace catena::parallel
