// RandomSourceScope: a piece of code draws its numbers from a place of its own, whatever was drawn
// before.
#pragma once

#include "catena/kernels/random.h"

namespace catena {

// While it lives, draws of the calling thread, from any state, take the numbers from `first` on,
// one after the other, and leave the states alone. Code that runs in another order, on another
// device or in another process draws the same so: parts of a model that is cut into stages.
//
// Scopes nest; the innermost counts. What RandomLogScope repeats comes from its log all the same,
// and what it notes are the numbers that were taken here. `first.base`, if there is one, must live
// as long as the scope, and as the graph that is captured in it.
class RandomSourceScope {
 public:
  explicit RandomSourceScope(const RandomBits& first);
  ~RandomSourceScope();
  RandomSourceScope(const RandomSourceScope&) = delete;
  RandomSourceScope& operator=(const RandomSourceScope&) = delete;

 private:
  friend class RandomState;
  static RandomSourceScope*& innermost();
  // The next `blocks` blocks.
  RandomBits take(uint64_t blocks);

  RandomBits next_;
  RandomSourceScope* outer_;
};

}  // namespace catena
