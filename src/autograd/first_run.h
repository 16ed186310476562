// First runs of code that is computed again for backward.
#pragma once

#include "catena/autograd/grad_mode.h"

namespace catena {

// A NoBackprop scope around what is recorded all the same, by the second run that backward makes
// of it (recompute).
class FirstRun {
 public:
  FirstRun();
  ~FirstRun();
  FirstRun(const FirstRun&) = delete;
  FirstRun& operator=(const FirstRun&) = delete;

 private:
  NoBackprop off_;
  int previous_;
};

// Whether what the calling thread computes is recorded, now or by a second run. False under a
// NoBackprop of its own inside a first run: the second run meets that, too.
bool is_recorded_in_the_end();

}  // namespace catena
