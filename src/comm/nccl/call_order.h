// Keeps the kernels of one kind in the order of their calls, on whatever streams these are.
#pragma once

#include "nccl_calls.h"

namespace catena::comm::nccl {

class CallOrder {
 public:
  // Before a call is queued on `stream`, which then waits for the call before.
  void enter(const Stream& stream);
  // Whether a graph holds a call.
  bool captured() const { return captured_; }

 private:
  Stream last_;  // of the call before
  bool captured_ = false;
};

}  // namespace catena::comm::nccl
