// Processes: what the processes that train one model do together for an optimizer.
#pragma once

#include <cstdint>

#include "catena/array/array.h"
#include "catena/optimizers/arena.h"

namespace catena::optimizers {

// Of one group of processes, such as those that keep parts of the states, or those that have
// slices of the parameters. An optimizer has those of its stages (UpdateStage::processes), which
// may be several. Sums and gathers are collective over the group. Everything is queued on the
// current streams of the arrays' devices.
class Processes {
 public:
  virtual ~Processes() = default;

  // Which part of master copies and states a process keeps, and therefore of the parameters it
  // updates, and whether it keeps more of the others.
  using Share = ArenaShare;
  // Of this process. Asked in setup; the first group with several parts decides.
  virtual Share share() const { return {}; }
  // How arenas are cut; the first group that cuts decides. Asked in setup.
  virtual ArenaCuts cuts() const { return {}; }
  // The setup that has asked has thrown, and the optimizer is as it was. Values of which arenas had
  // kept a part are gone.
  virtual void setup_failed() {}
  // This process's part, 1-d, beside those of the others, in the order of their index. Undefined
  // where the group shares nothing.
  virtual Array gather(const Array& part) {
    (void)part;
    return {};
  }

  // Of what sums over processes are.
  enum class Sum : uint8_t {
    kParts,    // of numbers that each computes from its part of the states (share)
    kNorm,     // 0-d: of the squares of this process's gradients
    kSquares,  // (2, slots) for each arena, for rules with norms such as LARS and LAMB: of the
               // squares of each parameter's values, and of its gradient or step
    kFound,    // 0-d: differs from 0 if this process has found gradients that are not finite
  };
  // Makes the float64 arrays, of any device, the sums over the group, in place; leaves them where
  // its processes have the same.
  virtual void sum(const Arrays& arrays, Sum of) = 0;
  // How much this process's squares of the parameter count in kNorm and kSquares, from 0 to 1: the
  // weights of the processes that have the same elements have the sum 1. Asked in setup, and when
  // the stage is added.
  virtual double weight_of(const Parameter& parameter) const {
    (void)parameter;
    return 1;
  }
};

}  // namespace catena::optimizers
